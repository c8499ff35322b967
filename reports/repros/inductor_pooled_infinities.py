"""Max pooling of infinities: compiled, the index that comes back lies outside of the input."""

import sys

import torch
import torch.nn.functional as F


def f(x):
    return F.max_pool2d(x, 3, 2, 1, return_indices=True)[1]


x = torch.full((1, 1, 5, 5), float("-inf"))
want, got = f(x), torch.compile(f)(x)
print("indices: eager", want.flatten().tolist(), "compiled", got.flatten().tolist())
sys.exit(bool((got < 0).any() or (got >= 25).any()))
