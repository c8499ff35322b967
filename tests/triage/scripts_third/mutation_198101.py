"""pytorch#198101: an input read through a view of another dtype and written afterwards: the new values are read."""

import torch


def f(x):
    halves = x.view(torch.int32) + 1
    halves.mul_(3)
    x[:, 1:3] = 7
    return halves.view(torch.int64)


x = torch.arange(12).view(3, 4)
want, got = f(x.clone()), torch.compile(f)(x.clone())
torch.testing.assert_close(got, want)
