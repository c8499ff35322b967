"""pytorch#195451: an output that was copied into an input shares its storage when compiled."""

import sys

import torch


def step(param, patch):
    updated = torch.slice_scatter(param, patch, 0, 0, 2)
    param.copy_(updated)
    return updated


def caller(fn):
    p = torch.zeros(4)
    new = fn(p, torch.ones(2))
    new.mul_(0.5)
    return p


a, b = caller(step), caller(torch.compile(step))
print("param after the caller wrote into the output:", a.tolist(), b.tolist())
sys.exit(not torch.equal(a, b))
