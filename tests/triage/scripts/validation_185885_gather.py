"""pytorch#185885: neighbour: gather with a negative index."""

import sys

import torch


def f(x, i):
    return torch.gather(x, 0, i)


def outcome(fn):
    args = (torch.arange(6.0).view(3, 2), torch.tensor([[-1, 0]]))
    try:
        r = fn(*args)
    except (RuntimeError, IndexError, ValueError):
        return "raises"
    return r.tolist()


eager, compiled = outcome(f), outcome(torch.compile(f))
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
