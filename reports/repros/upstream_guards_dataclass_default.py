"""The default of a dataclass field changes: the compiled function goes on with the old one. Needs torch alone;
exits 1 while it is so."""

import dataclasses
import sys

import torch


@dataclasses.dataclass
class Options:
    bias: float = 1.0


def f(x):
    return x + Options().bias


c = torch.compile(f)
c(torch.zeros(1))
Options.__init__.__defaults__ = (9.0,)
want, got = f(torch.zeros(1)).item(), c(torch.zeros(1)).item()
print("eager", want, "compiled", got)
sys.exit(want != got)
