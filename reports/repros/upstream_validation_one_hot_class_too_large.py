"""one_hot of a class that there is not: eager raises, the compiled function does not. Needs torch alone; exits 1
while it is so."""

import sys

import torch
import torch.nn.functional as F


def f(t):
    return F.one_hot(t, 3)


def outcome(fn):
    args = (torch.tensor([0, 4]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
