"""pytorch#185888: neighbour: an input whose .data is replaced."""

import sys

import torch


def f(x):
    x.data = torch.zeros(7)
    return tuple(x.shape), x.numel()


want, got = f(torch.ones(2, 3)), torch.compile(f)(torch.ones(2, 3))
print("shape after x.data = zeros(7): eager", want, "compiled", got)
sys.exit(want != got)
