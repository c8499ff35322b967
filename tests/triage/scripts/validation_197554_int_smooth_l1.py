"""pytorch#197554: smooth_l1_loss of integers: eager raises."""

import sys

import torch
import torch.nn.functional as F


def f(x, y):
    return F.smooth_l1_loss(x, y)


def outcome(fn):
    args = (torch.tensor([1, 2]), torch.tensor([3, 5]))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
