"""`|` of a subclass of dict does not give a dict inside a compiled function. Needs torch alone; exits 1 while it
is so."""

import sys

import torch


class Config(dict):
    pass


def f(x):
    c = Config(a=1)
    return x + 1, type(c | {"b": 2}) is dict


want, got = f(torch.zeros(1))[1], torch.compile(f)(torch.zeros(1))[1]
print(want, got)
sys.exit(want != got)
