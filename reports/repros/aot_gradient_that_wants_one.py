"""A gradient that wants a gradient itself, in another layout than foreseen, is given with create_graph: refused as a write to a leaf."""

import torch


def program(x):
    return x.sin()


x = torch.ones(2, 3, requires_grad=True)
given = torch.ones(3, 2).t().requires_grad_()
try:
    torch.autograd.grad(torch.compile(program, backend="aot_eager")(x), x, given, create_graph=True)
except RuntimeError as error:
    raise SystemExit(f"torch {torch.__version__}: {error}") from None
