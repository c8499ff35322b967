"""A global shadows a builtin after the first call: the compiled function goes on with the builtin. Needs torch
alone; exits 1 while it is so."""

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
