"""A mapping proxy can be written to inside a compiled function. Needs torch alone; exits 1 while it is so."""

import sys
import types

import torch


def f(x):
    view = types.MappingProxyType({"a": 1})
    try:
        view["b"] = 2
    except TypeError:
        return x - 1
    return x + view["b"]


want, got = f(torch.zeros(1)).item(), torch.compile(f)(torch.zeros(1)).item()
print("eager", want, "compiled", got)
sys.exit(want != got)
