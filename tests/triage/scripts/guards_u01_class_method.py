"""No report known: a method of a module's class is replaced after the first call."""

import sys

import torch


class Block(torch.nn.Module):
    def act(self, x):
        return x + 1

    def forward(self, x):
        return self.act(x)


m = Block()
c = torch.compile(m)
x = torch.zeros(2)
c(x)
Block.act = lambda self, x: x + 100
want, got = m(x), c(x)
print("eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want, got))
