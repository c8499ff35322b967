"""pytorch#198094: neighbour: index_add, then zero_."""

import sys

import torch


def f(x, i, v):
    total = torch.index_add(x, 0, i, v)
    x.zero_()
    return total


x, i, v = torch.arange(6.0).view(3, 2), torch.tensor([2, 0]), torch.ones(2, 2)
want, got = f(x.clone(), i, v), torch.compile(f)(x.clone(), i, v)
print(want.tolist(), got.tolist())
sys.exit(not torch.equal(want, got))
