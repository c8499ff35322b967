"""pytorch#186018: sin(atan(nan and inf))."""

import sys

import torch


def f(x):
    return torch.sin(torch.atan(x))


x = torch.tensor([float("nan"), 1.0, float("inf")])
want, got = f(x), torch.compile(f)(x)
print("sin(atan(nan)): eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want.isnan(), got.isnan()))
