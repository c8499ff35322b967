"""pytorch#190765: two products, transposed, added, transposed back and flattened; dynamic sizes."""

import torch


def f(x, a, b):
    z = ((x @ a).t() + (x @ b).t()).t()
    return torch.flip(torch.repeat_interleave(torch.flatten(z), repeats=2), dims=[0])


torch.manual_seed(0)
x, a, b = torch.randn(8, 6), torch.randn(6, 8), torch.randn(6, 8)
torch.testing.assert_close(torch.compile(f, dynamic=True)(x, a, b), f(x, a, b))
