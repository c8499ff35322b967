"""A Python float is 0.0 in the first call and -0.0 in the second: the guard takes them for the same. Needs torch
alone; exits 1 while it is so."""

import math
import sys

import torch


def f(x, k):
    return x * math.copysign(3.0, k)


c = torch.compile(f)
x = torch.ones(1)
c(x, 0.0)
want, got = f(x, -0.0).item(), c(x, -0.0).item()
print("eager", want, "compiled", got)
sys.exit(want != got)
