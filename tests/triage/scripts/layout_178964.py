"""pytorch#178964: indices of a max over a sum of a transposed and a contiguous input."""

import sys

import torch

g = torch.Generator().manual_seed(0)
a, b = torch.randn(8, 8, generator=g), torch.randn(8, 8, generator=g)


def f(a, b):
    return (a.T + b).max(dim=1).indices


want, got = f(a, b), torch.compile(f)(a, b)
print(want.tolist(), got.tolist())
sys.exit(0 if torch.equal(want, got) else 1)
