"""pytorch#198081: any() of a uint8 tensor is bool when compiled, so that later arithmetic does not wrap."""

import sys

import torch


class Flag(torch.nn.Module):
    def forward(self, x):
        return torch.any(x) * 200 + 100


m = Flag()
x = torch.tensor([0, 3, 0], dtype=torch.uint8)
want, got = m(x), torch.compile(m)(x)
print(want, got, want.dtype, got.dtype)
sys.exit(want.dtype != got.dtype or int(want) != int(got))
