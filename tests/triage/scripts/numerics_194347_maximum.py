"""pytorch#194347: neighbour: maximum(0.0, -0.0)."""

import sys

import torch


def f(x, y):
    return 1 / torch.maximum(x, y)


x, y = torch.tensor([0.0]), torch.tensor([-0.0])
want, got = f(x, y).item(), torch.compile(f)(x, y).item()
print("1/maximum(0.0, -0.0): eager", want, "compiled", got)
sys.exit(want != got)
