"""pytorch#171191: a float64 mask in hand-written attention: eager refuses, the fused attention accepts."""

import sys

import torch


def attention(q, k, v, mask):
    scores = torch.bmm(q, k.transpose(1, 2)) / 2.0
    return torch.bmm(torch.softmax(scores + mask, -1), v)


q, k, v = (torch.randn(2, 4, 4) for _ in range(3))
mask = torch.zeros(4, 4, dtype=torch.float64)


def run(fn):
    try:
        return str(fn(q, k, v, mask).dtype)
    except RuntimeError:
        return "raises"


a, b = run(attention), run(torch.compile(attention))
print(a, b)
sys.exit(a != b)
