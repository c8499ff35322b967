"""pytorch#198364: addr(beta=0) of a transposed input: eager keeps the layout."""

import sys

import torch


def f(x, y):
    return torch.addr(x, y[:, 0], y[0], beta=0)


x = torch.randn(3, 4).mT
y = torch.rand(4, 3).t().contiguous().t() + 1
want, got = f(x, y), torch.compile(f)(x, y)
print("strides: eager", want.stride(), "compiled", got.stride())
sys.exit(want.stride() != got.stride() or not torch.allclose(want, got))
