"""pytorch#196211: neighbour: reversed() of a dict, advanced, then unpacked."""

import sys

import torch


def f(x):
    keys = reversed({"a": 1, "b": 2, "c": 3})
    first = next(keys)
    return x + len(first), [*iter(keys)]


want, got = f(torch.zeros(1))[1], torch.compile(f)(torch.zeros(1))[1]
print("the rest after one next(): eager", want, "compiled", got)
sys.exit(want != got)
