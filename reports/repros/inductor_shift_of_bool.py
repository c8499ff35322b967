"""A bool tensor is shifted by a number: eager gives integers, the compiler raises."""

import sys

import torch


def f(x):
    return x << 1


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
