"""uniform_ from 2 to 1: eager raises, the compiled function does not. Needs torch alone; exits 1 while it is so."""

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
