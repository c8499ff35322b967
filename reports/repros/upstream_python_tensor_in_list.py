"""A tensor is not found in a list that holds it inside a compiled function. Needs torch alone; exits 1 while it is
so."""

import sys

import torch


def f(x):
    return x + 1, x in [x]


want, got = f(torch.arange(3.0))[1], torch.compile(f)(torch.arange(3.0))[1]
print("x in [x]: eager", want, "compiled", got)
sys.exit(want is not got)
