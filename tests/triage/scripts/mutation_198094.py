"""pytorch#198094: slice_scatter's result shares the buffer of an input that is zeroed afterwards."""

import sys

import torch


def f(x, src):
    out = torch.slice_scatter(x, src, dim=0, start=1, end=3)
    x.zero_()
    return out


x = torch.arange(20.0).reshape(4, 5)
src = torch.full((2, 5), -1.0)
want = f(x.clone(), src)
got = torch.compile(f)(x.clone(), src)
if not torch.equal(want, got):
    print("slice_scatter's result was zeroed together with its input:", got)
    sys.exit(1)
