"""The class of a global object gets another base: the compiled function goes on with the old method. Needs torch
alone; exits 1 while it is so."""

import sys

import torch


class Slow:
    def factor(self):
        return 1


class Fast:
    def factor(self):
        return 50


class Policy(Slow):
    pass


p = Policy()
c = torch.compile(lambda x: x * p.factor())
x = torch.ones(1)
c(x)
Policy.__bases__ = (Fast,)
print("eager", p.factor(), "compiled", c(x).item())
sys.exit(c(x).item() != p.factor())
