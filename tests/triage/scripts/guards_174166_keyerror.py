"""pytorch#174166: neighbour: the key whose absence was caught in the first call exists in the second."""

import sys

import torch


def f(x, table):
    try:
        return x * table["k"]
    except KeyError:
        return x - 1


t = {}
c = torch.compile(f)
x = torch.ones(1)
first = (f(x, t).item(), c(x, t).item())
t["k"] = 5.0
second = (f(x, t).item(), c(x, t).item())
print(first, second)
sys.exit(first[0] != first[1] or second[0] != second[1])
