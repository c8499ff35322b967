"""What a starred name takes is not a list inside a compiled function. Needs torch alone; exits 1 while it is so."""

import sys

import torch


def f(x):
    first, *rest, _last = [1, 2, 3, 4]
    rest_is_list = isinstance(rest, list)
    return x + first, rest, rest_is_list


want, got = f(torch.zeros(1)), torch.compile(f)(torch.zeros(1))
print(want[1:], got[1:])
sys.exit(want[1:] != got[1:])
