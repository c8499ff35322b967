"""No report known: a nan row of hand-written attention that is rewritten to the fused one."""

import sys

import torch

torch.manual_seed(0)


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / 4.0, -1) @ v


q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
q[0, 0, 3] = float("nan")
with torch.no_grad():
    want, got = attention(q, k, v), torch.compile(attention)(q, k, v)
print("NaN results: eager", want.isnan().sum().item(), "compiled", got.isnan().sum().item())
sys.exit(not torch.equal(want.isnan(), got.isnan()))
