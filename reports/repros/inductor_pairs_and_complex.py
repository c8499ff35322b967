"""A complex tensor and its view as pairs of numbers are both inputs, and the pairs are written."""

import torch


def f(pairs, z):
    pairs.mul_(2)
    return z.abs()


a, b = torch.ones(3, dtype=torch.complex64), torch.ones(3, dtype=torch.complex64)
want = f(torch.view_as_real(a), a)
got = torch.compile(f)(torch.view_as_real(b), b)
torch.testing.assert_close(got, want)
torch.testing.assert_close(b, a)
