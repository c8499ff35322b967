"""pytorch#197811: neighbour: closures over unary methods of Tensor."""

import sys

import torch


def apply(method):
    def layer(x):
        return method(x)

    return layer


x = torch.tensor([0.25])
pairs = [(apply(m)(x).item(), torch.compile(apply(m))(x).item()) for m in (torch.Tensor.sin, torch.Tensor.cos)]
print("sin and cos, (eager, compiled):", pairs)
sys.exit(any(abs(a - b) > 1e-6 for a, b in pairs))
