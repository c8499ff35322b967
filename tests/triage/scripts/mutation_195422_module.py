"""pytorch#195422: neighbour: nn.Dropout in eval(), then an in-place write."""

import sys

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(x)
        y.mul_(3)
        return x + 1


m = Block().eval()
a, b = torch.ones(2), torch.ones(2)
want, got = m(a), torch.compile(m)(b)
print("eager", want.tolist(), a.tolist(), "compiled", got.tolist(), b.tolist())
sys.exit(not (torch.equal(want, got) and torch.equal(a, b)))
