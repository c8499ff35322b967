"""pytorch#178964: neighbour: argmin over a product of a transposed and a contiguous input."""

import sys

import torch

torch.manual_seed(1)


def f(a, b):
    return torch.argmin(a.transpose(0, 1) * b, 1)


a, b = torch.randn(16, 8), torch.randn(8, 16)
want, got = f(a, b), torch.compile(f)(a, b)
print(want.tolist(), got.tolist())
sys.exit(not torch.equal(want, got))
