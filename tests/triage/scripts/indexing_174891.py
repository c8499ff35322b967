"""pytorch#174891: a broadcast add of complex tensors."""

import sys

import torch


def f(a, b):
    return a + b


a = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, -2 + 0j]])
b = torch.ones(2, 1, dtype=torch.complex64)
want, got = f(a, b), torch.compile(f)(a, b)
print(want, got)
sys.exit(not torch.allclose(want, got))
