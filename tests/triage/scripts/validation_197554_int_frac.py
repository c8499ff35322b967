"""pytorch#197554: frac of integers: eager raises."""

import sys

import torch


def f(x):
    return torch.frac(x)


def outcome(fn):
    args = (torch.tensor([3, 4]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
