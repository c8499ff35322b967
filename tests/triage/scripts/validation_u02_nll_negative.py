"""No report known: nll_loss with a negative class: eager raises."""

import sys

import torch
import torch.nn.functional as F


def f(x, y):
    return F.nll_loss(x, y)


def outcome(fn):
    args = (torch.zeros(2, 3), torch.tensor([0, -1]))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
