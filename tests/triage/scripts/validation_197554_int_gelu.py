"""pytorch#197554: gelu of integers: eager raises."""

import sys

import torch
import torch.nn.functional as F


def f(x):
    return F.gelu(x)


def outcome(fn):
    args = (torch.tensor([4, -4]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
