"""No report known: integers to a negative power: eager raises."""

import sys

import torch


def f(x):
    return x**-1


def outcome(fn):
    args = (torch.tensor([2, 3]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
