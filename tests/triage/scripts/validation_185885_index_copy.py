"""pytorch#185885: neighbour: index_copy with a negative index."""

import sys

import torch


def f(x, i, s):
    return x.index_copy(0, i, s)


def outcome(fn):
    args = (torch.zeros(3, 2), torch.tensor([-1]), torch.ones(1, 2))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
