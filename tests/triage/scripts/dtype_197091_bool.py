"""pytorch#197091: ldexp(bool, half) promotes otherwise than eager."""

import sys

import torch


def f(m, e):
    return torch.ldexp(m, e)


m, e = torch.tensor([True, False, True]), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float16)
want, got = f(m, e), torch.compile(f)(m, e)
print(want.dtype, got.dtype)
sys.exit(want.dtype != got.dtype)
