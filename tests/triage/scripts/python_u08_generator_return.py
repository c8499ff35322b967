"""No report known: the return value of a generator that is delegated to."""

import torch


def inner():
    yield 1
    return 9


def outer():
    result = yield from inner()
    yield result


def f(x):
    return x + sum(outer())


assert torch.compile(f)(torch.zeros(1)).item() == 10
