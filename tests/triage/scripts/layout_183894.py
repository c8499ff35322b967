"""pytorch#183894: argmin and argmax of a transposed input that was written in place."""

import sys

import torch

torch.manual_seed(0)


def f(x):
    x.sin_()
    return x.transpose(0, 1).argmin(), x.t().argmax()


x = torch.randn(4, 7)
want, got = f(x.clone()), torch.compile(f)(x.clone())
print(want, got)
sys.exit(any(int(a) != int(b) for a, b in zip(want, got, strict=True)))
