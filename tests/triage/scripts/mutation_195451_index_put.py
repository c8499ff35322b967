"""pytorch#195451: neighbour: index_put, then copy_ into the input."""

import sys

import torch


def step(x, i):
    y = x.index_put((i,), torch.tensor(9.0))
    x.copy_(y)
    return y


res = []
for fn in (step, torch.compile(step)):
    x = torch.zeros(3)
    out = fn(x, torch.tensor([1]))
    out.fill_(-1)
    res.append(x.tolist())
print("x after the caller filled the output: eager", res[0], "compiled", res[1])
sys.exit(res[0] != res[1])
