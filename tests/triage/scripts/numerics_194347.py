"""pytorch#194347: minimum(-0.0, 0.0): the sign of zero."""

import sys

import torch


def f(x, y):
    return torch.minimum(x, y)


# one element: eager's own vector path does not come into it
x, y = torch.tensor([-0.0]), torch.tensor([0.0])
want, got = f(x, y), torch.compile(f)(x, y)
print("minimum(-0.0, 0.0): eager", want.item(), "compiled", got.item())
sys.exit(bool(want.signbit()) != bool(got.signbit()))
