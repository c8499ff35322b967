"""pytorch#195675: neighbour: full with a value beyond half."""

import sys

import torch


def f(x):
    return x + torch.full((2,), 1e6, dtype=torch.float16)


def outcome(fn):
    args = (torch.ones(2, dtype=torch.float16),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
