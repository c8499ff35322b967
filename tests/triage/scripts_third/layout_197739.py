"""pytorch#197739: argmin of a transposed input plus a number points at another element."""

import torch


def f(x):
    return (x.t() + 0.5).argmin()


x = torch.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 0.5]])
assert f(x) == torch.compile(f)(x)
