"""pytorch#198364: div(rounding_mode="floor") of a transposed input: eager keeps the layout."""

import sys

import torch


def f(x, y):
    return torch.div(x, y, rounding_mode="floor")


x = torch.randn(3, 4).mT
y = torch.rand(4, 3) + 1
want, got = f(x, y), torch.compile(f)(x, y)
print("strides: eager", want.stride(), "compiled", got.stride())
sys.exit(want.stride() != got.stride() or not torch.allclose(want, got))
