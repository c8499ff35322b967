"""pytorch#176851: neighbour: the class attribute is read through a classmethod."""

import sys

import torch


class Registry:
    gain = 1

    @classmethod
    def get(cls):
        return cls.gain


def f(x):
    return x * Registry.get()


c = torch.compile(f)
c(torch.ones(1))
Registry.gain = 9
want, got = f(torch.ones(1)).item(), c(torch.ones(1)).item()
print(want, got)
sys.exit(want != got)
