"""nll_loss ignores no class of -1: eager raises, the compiled function does not. Needs torch alone; exits 1 while it is so."""

import sys

import torch
import torch.nn.functional as F


def f(x, target):
    return F.nll_loss(x, target)


def outcome(fn):
    args = (torch.ones(2, 3), torch.tensor([0, -1]),)
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
