"""pytorch#176599: getter and setter of a property are skipped."""

import sys

import torch


class Box:
    def __init__(self):
        self._v = 1
        self.log = []

    @property
    def value(self):
        self.log.append("get")
        return self._v * 10

    @value.setter
    def value(self, v):
        self.log.append("set")
        self._v = v


def f(x):
    b = Box()
    b.value = 5
    return x + b.value, b.log


x = torch.zeros(2)
want, got = f(x), torch.compile(f)(x)
print(want, got)
sys.exit(not torch.equal(want[0], got[0]) or want[1] != got[1])
