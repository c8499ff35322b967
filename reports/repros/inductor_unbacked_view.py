"""Rows that a mask chose, transposed, made contiguous and viewed, do not compile with gradients: "Could not guard on Eq(Max(1, u0), u0)"."""

import sys

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def f(x, mask):
    return x[mask].t().contiguous().view(3, 2, -1).sum(-1)


x = torch.randn(10, 6, requires_grad=True)
mask = torch.arange(10) < 4
f(x, mask).sum().backward()
try:
    torch.compile(f, fullgraph=True)(x, mask).sum().backward()
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)
