"""The compiled function looks through lru_cache: what the cached function said first is not kept. Needs torch
alone; exits 1 while it is so."""

import functools
import sys

import torch

source = [1.0]


@functools.lru_cache
def setting():
    return source[0]


def f(x):
    return x + setting()


def play(fn):
    setting.cache_clear()
    source[0] = 1.0
    first = fn(torch.zeros(1)).item()
    source[0] = 9.0  # the cached answer stays in force until cache_clear()
    return first, fn(torch.zeros(1)).item()


want, got = play(f), play(torch.compile(f))
print("eager", want, "compiled", got)
sys.exit(want != got)
