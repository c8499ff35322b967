"""pytorch#174891: a broadcast add of complex tensors changes the imaginary part."""

import torch


def f(a, b):
    return a + b


a = torch.tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]])
b = torch.ones(2, 1, dtype=torch.complex64)
assert torch.equal(f(a, b), torch.compile(f)(a, b)), torch.compile(f)(a, b)
