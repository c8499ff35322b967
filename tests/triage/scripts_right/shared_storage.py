# Two inputs are overlapping views of one storage; one of them is written.
import sys

import torch


def f(a, b):
    a.add_(1)
    return a * b


left, right = torch.arange(6.0), torch.arange(6.0)
want = f(left[:4], left[2:])
got = torch.compile(f)(right[:4], right[2:])
sys.exit(not (torch.equal(want, got) and torch.equal(left, right)))
