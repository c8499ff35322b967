"""The last two rows of a tensor whose length is marked unbacked do not lower: KeyError: 'unbacked_bindings'."""

import sys

import torch


def f(x):
    return x[-2:] * 2.0


x = torch.randn(5, 8)
torch._dynamo.decorators.mark_unbacked(x, 0)
try:
    torch.compile(f, fullgraph=True)(x)
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)
