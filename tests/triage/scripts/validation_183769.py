"""pytorch#183769: select out of range inside a cat: eager raises."""

import sys

import torch


def f(x):
    return torch.cat([x.select(1, 0), x.select(1, 1)])


def run(fn):
    try:
        return fn(torch.ones(3, 1)).tolist()
    except Exception:
        return "raises"


a, b = run(f), run(torch.compile(f))
print(a, b)
sys.exit(a != b)
