"""pytorch#180164: the gradient of slice_scatter's base must be zero where it was overwritten."""

import sys

import torch


def f(x, y):
    return torch.slice_scatter(x, y, dim=1, start=0, end=6).sum(dim=1)


g = []
for fn in (f, torch.compile(f)):
    torch.manual_seed(0)
    x = torch.randn(4, 13, 5, requires_grad=True)
    y = torch.randn(4, 6, 5, requires_grad=True)
    fn(x, y).sum().backward()
    g.append(x.grad)
print("nonzero elements of x.grad:", g[0].count_nonzero().item(), g[1].count_nonzero().item())
sys.exit(not torch.equal(*g))
