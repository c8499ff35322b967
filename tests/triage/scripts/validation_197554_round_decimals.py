"""pytorch#197554: round(decimals=1) of integers: eager raises."""

import sys

import torch


def f(x):
    return torch.round(x, decimals=1)


def outcome(fn):
    args = (torch.tensor([1, 2]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
