"""pytorch#186018: sin of atan of NaN is NaN in eager; compiled it is a number."""

import torch


def f(x):
    return torch.sin(torch.atan(x))


got = torch.compile(f)(torch.tensor([float("nan")]))
assert got.isnan().all(), got
