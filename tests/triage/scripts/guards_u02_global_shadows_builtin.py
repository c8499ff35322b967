"""No report known: a global that shadows a builtin is defined after the first call."""

import sys

import torch


def f(x):
    return x + abs(-3)


c = torch.compile(f)
c(torch.zeros(1))


def abs(v):
    return 70


want, got = f(torch.zeros(1)).item(), c(torch.zeros(1)).item()
print("eager", want, "compiled", got)
sys.exit(want != got)
