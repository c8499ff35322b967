"""pytorch#180164: neighbour: select_scatter's base gets no gradient in the overwritten row."""

import sys

import torch


def f(x, y):
    return torch.select_scatter(x, y, 0, 2).sum()


g = []
for fn in (f, torch.compile(f)):
    x, y = torch.ones(4, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    fn(x, y).backward()
    g.append(x.grad)
print("rows of x.grad:", g[0].sum(1).tolist(), g[1].sum(1).tolist())
sys.exit(not torch.equal(*g))
