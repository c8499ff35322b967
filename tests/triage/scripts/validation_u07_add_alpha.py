"""No report known: add with an alpha that does not fit uint8: eager raises."""

import sys

import torch


def f(x):
    return torch.add(x, x, alpha=300)


def outcome(fn):
    args = (torch.tensor([1, 2], dtype=torch.uint8),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
