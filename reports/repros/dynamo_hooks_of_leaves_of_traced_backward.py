"""With trace_autograd_ops, a backward in the program calls no hook of a leaf: neither register_hook nor register_post_accumulate_grad_hook."""

import torch

torch._dynamo.config.trace_autograd_ops = True


def program(x):
    x.sin().sum().backward()


def halves(leaf):
    leaf.grad.div_(2)


wrong = []
for name in ("register_hook", "register_post_accumulate_grad_hook"):
    told = []
    for run in (program, torch.compile(program, backend="aot_eager", fullgraph=True)):
        x = torch.zeros(3, requires_grad=True)
        getattr(x, name)(halves if "post" in name else lambda grad: grad / 2)
        run(x)
        told.append(x.grad.tolist())
    if told[0] != told[1]:
        wrong.append(f"{name}: eager {told[0]}, compiled {told[1]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(wrong))
