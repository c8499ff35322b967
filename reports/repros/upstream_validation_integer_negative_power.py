"""Integers have no negative powers: eager raises, the compiled function does not. Needs torch alone; exits 1 while it is so."""

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
