"""pytorch#178365: __defaults__ of a helper are replaced between two calls."""

import sys

import torch


def helper(x, k=1):
    return x + k


@torch.compile
def f(x):
    return helper(x)


x = torch.zeros(1)
first = f(x).item()
helper.__defaults__ = (9,)
second = f(x).item()
print(first, second)
sys.exit(second != 9)
