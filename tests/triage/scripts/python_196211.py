"""pytorch#196211: iter() of an iterator that was advanced starts again."""

import sys

import torch


def f(x):
    it = reversed([1.0, 2.0, 3.0])
    first = next(it)
    total = 0.0
    for v in iter(it):
        total += v
    return x * first + total


want, got = f(torch.ones(1)), torch.compile(f)(torch.ones(1))
print(want, got)
sys.exit(not torch.equal(want, got))
