"""A contiguous tensor with an unbacked size is reversed: eager's result is contiguous, the compiled one is not."""

import sys

import torch


def f(x):
    return x.t().contiguous().flip(1)


x = torch.randn(5, 8)
want = f(x).stride()
torch._dynamo.decorators.mark_unbacked(x, 0)
got = torch.compile(f, fullgraph=True)(x).stride()
print("strides: eager", want, "compiled", got)
sys.exit(want != got)
