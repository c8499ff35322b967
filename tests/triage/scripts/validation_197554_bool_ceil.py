"""pytorch#197554: ceil of a bool tensor: eager raises."""

import sys

import torch


def f(x):
    return torch.ceil(x)


def outcome(fn):
    args = (torch.tensor([True, False]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
