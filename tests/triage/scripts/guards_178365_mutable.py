"""pytorch#178365: neighbour: a mutable default is changed in place."""

import sys

import torch

history = [1]


def helper(x, h=history):
    return x + h[0]


def f(x):
    return helper(x)


c = torch.compile(f)
c(torch.zeros(1))
history[0] = 9
want, got = f(torch.zeros(1)).item(), c(torch.zeros(1)).item()
print(want, got)
sys.exit(want != got)
