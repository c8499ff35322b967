"""pytorch#198081: neighbour: any(dim) of a uint8 tensor added to itself."""

import sys

import torch


def f(x):
    return x.any(dim=1) + x.any(dim=1)


x = torch.tensor([[0, 2], [0, 0]], dtype=torch.uint8)
want, got = f(x), torch.compile(f)(x)
print(want, got)
sys.exit(want.dtype != got.dtype or not torch.equal(want, got))
