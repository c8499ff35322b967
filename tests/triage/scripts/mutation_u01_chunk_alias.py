"""No report known: halves of an input that was scaled in place are views of it in eager."""

import sys

import torch


def f(x):
    x.mul_(2)
    return x.chunk(2)


def caller(fn):
    leaf = torch.arange(4.0, requires_grad=True)
    x = leaf * 1
    _low, high = fn(x)
    with torch.no_grad():
        high.detach().fill_(77.0)
    return x.tolist()


want, got = caller(f), caller(torch.compile(f))
print("x after writing into the second half: eager", want, "compiled", got)
sys.exit(want != got)
