"""pytorch#185885: neighbour: index_select with a negative index."""

import sys

import torch


def f(x, i):
    return torch.index_select(x, 1, i)


def outcome(fn):
    args = (torch.arange(6.0).view(2, 3), torch.tensor([-1, 0]))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
