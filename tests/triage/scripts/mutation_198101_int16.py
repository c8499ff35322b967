"""pytorch#198101: neighbour: int32 seen as int16 pairs; the later write is a copy_."""

import sys

import torch


def f(x):
    h = x.view(torch.int16) ^ 1
    h.add_(5)
    x.copy_(torch.zeros_like(x))
    return h.view(torch.int32)


x = torch.arange(6, dtype=torch.int32)
want, got = f(x.clone()), torch.compile(f)(x.clone())
print(want.tolist(), got.tolist())
sys.exit(not torch.equal(want, got))
