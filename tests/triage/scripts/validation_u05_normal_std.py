"""No report known: normal with a negative deviation: eager raises."""

import sys

import torch


def f(s):
    return torch.normal(0.0, s) * 0


def outcome(fn):
    args = (torch.tensor([-1.0, 2.0]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
