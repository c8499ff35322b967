"""An object with __slots__ takes any attribute inside a compiled function. Needs torch alone; exits 1 while it is
so."""

import sys

import torch


class Point:
    __slots__ = ("x",)


def f(t):
    p = Point()
    p.x = 1
    try:
        p.z = 2
    except AttributeError:
        return t + 10
    return t + p.z


want, got = f(torch.zeros(1)).item(), torch.compile(f)(torch.zeros(1)).item()
print("eager", want, "compiled", got)
sys.exit(want != got)
