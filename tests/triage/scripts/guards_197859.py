"""pytorch#197859: an entry of __dict__ shadows a registered submodule after the first call."""

import sys

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Scale(2.0)

    def forward(self, x):
        return self.sub(x) + 1


m = Net()
c = torch.compile(m)
x = torch.ones(2)
c(x)
object.__setattr__(m, "sub", Scale(10.0))
want, got = m(x), c(x)
print("eager uses the shadowing entry:", want.tolist(), "compiled:", got.tolist())
sys.exit(not torch.equal(want, got))
