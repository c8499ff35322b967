"""pytorch#183986: index_copy on an expanded row writes every row."""

import sys

import torch


def f(row, i, v):
    return row.expand(4, 3).index_copy(0, i, v)


row, i, v = torch.arange(3.0), torch.tensor([1]), torch.full((1, 3), 9.0)
want, got = f(row, i, v), torch.compile(f)(row, i, v)
print(want.tolist(), got.tolist())
sys.exit(not torch.equal(want, got))
