"""pytorch#198101: values read through a dtype view are computed after a later write to the base."""

import sys

import torch


def f(x):
    pairs = x.view(torch.int32) + 1
    pairs.mul_(3)
    x[:, 1:3] = 7
    return pairs.view(torch.int64)


base = torch.arange(12).reshape(3, 4)
want = f(base.clone())
got = torch.compile(f)(base.clone())
if not torch.equal(want, got):
    print(
        "values read through a dtype view were computed after the later write:", (want != got).sum().item(), "elements"
    )
    sys.exit(1)
