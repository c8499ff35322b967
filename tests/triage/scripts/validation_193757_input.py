"""pytorch#193757: neighbour: binary_cross_entropy with an input outside [0, 1]."""

import sys

import torch
import torch.nn.functional as F


def f(p, y):
    return F.binary_cross_entropy(p, y)


def outcome(fn):
    args = (torch.tensor([1.5, 0.5]), torch.tensor([1.0, 0.0]))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
