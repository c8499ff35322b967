"""pytorch#143717: neighbour: mul_ of an integer tensor by a float one."""

import sys

import torch


def f(x, y):
    return x.mul_(y)


def outcome(fn):
    try:
        return fn(torch.tensor([1, 2]), torch.tensor([0.5, 0.5])).tolist()
    except RuntimeError:
        return "raises"


a, b = outcome(f), outcome(torch.compile(f))
print("eager:", a, "compiled:", b)
sys.exit(a != b)
