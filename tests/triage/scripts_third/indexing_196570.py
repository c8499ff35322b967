"""pytorch#196570: a constant mask written by index, then a softmax: the compiler raises."""

import torch


def f(x, index):
    mask = torch.full((8,), float("-inf"))
    mask[index] = 0.0
    return torch.softmax(x + mask, dim=-1)


torch.manual_seed(0)
x, index = torch.randn(4, 8), torch.tensor([0, 3])
torch.testing.assert_close(torch.compile(f)(x, index), f(x, index))
