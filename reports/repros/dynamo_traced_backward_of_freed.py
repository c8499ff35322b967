"""With trace_autograd_ops, a second backward in the program through what the first one freed is not refused."""

import torch

torch._dynamo.config.trace_autograd_ops = True


@torch.compile(backend="aot_eager", fullgraph=True)
def program(x):
    loss = x.exp().sum()
    loss.backward()
    loss.backward()


x = torch.zeros(3, requires_grad=True)
try:
    program(x)
except RuntimeError:
    raise SystemExit(0) from None
raise SystemExit(f"torch {torch.__version__}: not refused, the gradient is {x.grad.tolist()}")
