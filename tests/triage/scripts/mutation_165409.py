"""pytorch#165409: an in-place op on overlapping windows of unfold."""

import torch


def f(x):
    y = x + 1
    w = y.unfold(0, 3, 1)
    w.abs_()
    return y


x = torch.tensor([-5.0, -1.0, 2.0, -3.0, 4.0])
want = f(x)
got = torch.compile(f)(x)
assert torch.equal(want, got), (want, got)
