"""pytorch#197893: x * ones returns the input itself, so that the caller's write reaches it."""

import sys

import torch


def f(x):
    return x * torch.ones_like(x)


def caller(fn):
    x = torch.zeros(3)
    y = fn(x)
    y += 5
    return x.tolist()


want, got = caller(f), caller(torch.compile(f))
print("input after the caller wrote into the output: eager", want, "compiled", got)
sys.exit(want != got)
