"""pytorch#143717: div_ of integers into integers: eager raises."""

import sys

import torch


def f(x, y):
    x.div_(y)
    return x


def outcome(fn):
    try:
        return fn(torch.tensor([6]), torch.tensor([4])).tolist()
    except RuntimeError:
        return "raises"


a, b = outcome(f), outcome(torch.compile(f))
print(a, b)
sys.exit(a != b)
