"""A factor of 300 does not fit into uint8: eager raises, the compiled function does not. Needs torch alone; exits 1 while it is so."""

import sys

import torch


def f(x):
    return torch.add(x, x, alpha=300)


def outcome(fn):
    args = (torch.ones(3, dtype=torch.uint8),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
