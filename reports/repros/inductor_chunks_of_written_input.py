"""An input that is no leaf is scaled in place and its halves are returned: compiled, they are no views of it."""

import sys

import torch


def f(x):
    x.mul_(2)
    return x.chunk(2)


def caller(fn):
    leaf = torch.arange(4.0, requires_grad=True)
    x = leaf * 1
    _, high = fn(x)
    with torch.no_grad():
        high.detach().fill_(77.0)
    return x.tolist()


want, got = caller(f), caller(torch.compile(f))
print("x after writing into the second half: eager", want, "compiled", got)
sys.exit(want != got)
