"""pytorch#174050: an object whose __class__ property lies, and isinstance."""

import sys

import torch


class Mask:
    @property
    def __class__(self):
        return int


def f(x, o):
    if isinstance(o, int):
        return x + 1
    return x - 1


o = Mask()
want, got = f(torch.zeros(1), o), torch.compile(f)(torch.zeros(1), o)
print(want, got)
sys.exit(not torch.equal(want, got))
