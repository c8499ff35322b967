"""pytorch#194345: remainder with a quotient that does not fit the dtype."""

import sys

import torch


def f(x, y):
    return torch.remainder(x, y)


x, y = torch.tensor([1e10, 1e30, 7.0]), torch.tensor([1e-20, 3e-10, 1e-38])
want, got = f(x, y), torch.compile(f)(x, y)
print("eager", want.tolist(), "compiled", got.tolist())
sys.exit(not bool(got.isfinite().all()))
