"""pytorch#197859: neighbour: an entry of __dict__ shadows a registered parameter."""

import sys

import torch

lin = torch.nn.Linear(2, 2, bias=False)
with torch.no_grad():
    lin.weight.fill_(1.0)
c = torch.compile(lin)
x = torch.ones(1, 2)
c(x)
lin.__dict__["weight"] = torch.zeros(2, 2)
want, got = lin(x), c(x)
print("eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want, got))
