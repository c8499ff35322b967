"""pytorch#195422: dropout that does nothing returns its input; a later write must reach the input."""

import sys

import torch
import torch.nn.functional as F


def f(x):
    y = F.dropout(x, 0.3, training=False)
    y += 1
    return y


a, b = torch.zeros(3), torch.zeros(3)
f(a)
torch.compile(f)(b)
print("input after the call: eager", a.tolist(), "compiled", b.tolist())
sys.exit(not torch.equal(a, b))
