"""The absolute value of the lowest int8, in a tensor without dims: -128 in eager, 128 when compiled."""

import sys

import torch


def f(x, number):
    return number.abs() * x


x, number = torch.ones(3), torch.tensor(-128, dtype=torch.int8)
want, got = f(x, number).tolist(), torch.compile(f)(x, number).tolist()
print("eager", want, "compiled", got)
sys.exit(want != got)
