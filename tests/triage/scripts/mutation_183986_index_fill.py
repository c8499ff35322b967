"""pytorch#183986: neighbour: index_fill on an expanded row."""

import sys

import torch


def f(row, i):
    return row.expand(4, 3).index_fill(0, i, 5.0)


row, i = torch.arange(3.0), torch.tensor([1])
want, got = f(row, i), torch.compile(f)(row, i)
print(want.tolist(), got.tolist())
sys.exit(not torch.equal(want, got))
