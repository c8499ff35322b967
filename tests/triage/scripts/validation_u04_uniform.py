"""No report known: uniform_ with its bounds exchanged: eager raises."""

import sys

import torch


def f(x):
    return x.uniform_(2.0, 1.0) * 0


def outcome(fn):
    args = (torch.zeros(3),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
