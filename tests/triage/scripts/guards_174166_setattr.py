"""pytorch#174166: the attribute whose absence was caught in the first call exists in the second."""

import sys

import torch


class Cache:
    pass


def f(x, cache):
    try:
        scale = cache.scale
    except AttributeError:
        scale = cache.scale = 3.0
        return x * scale
    return x * scale * 100


a, b = Cache(), Cache()
c = torch.compile(f)
x = torch.ones(1)
want, got = [f(x, a).item() for _ in range(2)], [c(x, b).item() for _ in range(2)]
print("eager", want, "compiled", got)
sys.exit(want != got)
