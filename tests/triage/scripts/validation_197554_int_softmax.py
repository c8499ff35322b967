"""pytorch#197554: softmax of integers: eager raises."""

import sys

import torch


def f(x):
    return torch.softmax(x, 0)


def outcome(fn):
    args = (torch.tensor([1, 2, 3]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
