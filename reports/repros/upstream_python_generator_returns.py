"""The value of `yield from` is lost inside a compiled function. Needs torch alone; exits 1 while it is so."""

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
