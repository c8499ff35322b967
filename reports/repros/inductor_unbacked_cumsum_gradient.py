"""The gradient of a running sum over rows that a mask chose does not compile: the derivative of cumsum asks whether there is one element at most."""

import sys

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def f(x, mask):
    return x[mask].cumsum(0)


x = torch.randn(10, 6, requires_grad=True)
mask = torch.arange(10) < 4
f(x, mask).sum().backward()
try:
    torch.compile(f, fullgraph=True)(x, mask).sum().backward()
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)
