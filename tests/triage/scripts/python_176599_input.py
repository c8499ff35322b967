"""pytorch#176599: neighbour: the object with the property is an input."""

import sys

import torch


class Gauge:
    def __init__(self):
        self.raw = 0

    level = property(lambda self: self.raw + 100, lambda self, v: setattr(self, "raw", v * 2))


def f(x, g):
    g.level = 3
    return x * g.level


g1, g2 = Gauge(), Gauge()
a, b = f(torch.ones(2), g1), torch.compile(f)(torch.ones(2), g2)
print(a, b, g1.raw, g2.raw)
sys.exit(not (torch.equal(a, b) and g1.raw == g2.raw))
