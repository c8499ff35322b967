"""pytorch#177630: matmul of 3-d half and float32: eager refuses."""

import sys

import torch


def f(a, b):
    return torch.matmul(a, b)


def run(fn):
    try:
        return str(fn(torch.ones(2, 3, 4, dtype=torch.half), torch.ones(2, 4, 5)).dtype)
    except RuntimeError:
        return "raises"


a, b = run(f), run(torch.compile(f))
print("eager:", a, "compiled:", b)
sys.exit(a != b)
