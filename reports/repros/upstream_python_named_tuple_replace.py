"""_replace, equality or _asdict of a namedtuple differ inside a compiled function. Needs torch alone; exits 1
while it is so."""

import collections

import torch

Point = collections.namedtuple("Point", "x y")


def f(t):
    p = Point(1, 2)._replace(x=5)
    return t + p.x, p == (5, 2), p._asdict()


want, got = f(torch.zeros(1)), torch.compile(f)(torch.zeros(1))
assert want[1:] == got[1:], (want, got)
