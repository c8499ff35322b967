"""The __init__ of a class whose objects the function makes is replaced: the compiled function goes on with the old
one. Needs torch alone; exits 1 while it is so."""

import sys

import torch


class Config:
    def __init__(self):
        self.gain = 2.0


def f(x):
    return x * Config().gain


c = torch.compile(f)
x = torch.ones(1)
c(x)


def other_init(self):
    self.gain = 50.0


Config.__init__ = other_init
print("eager", f(x).item(), "compiled", c(x).item())
sys.exit(f(x).item() != c(x).item())
