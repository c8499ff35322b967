"""Attention by hand over permuted heads is fused, and its result has other strides than eager's."""

import sys

import torch


def f(q, k, v):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return torch.matmul(q, k.transpose(-2, -1)).div(4.0).softmax(dim=-1).matmul(v)


inputs = [torch.randn(2, 11, 3, 16) for _ in range(3)]
eager, compiled = f(*inputs).stride(), torch.compile(f)(*inputs).stride()
print("eager:", eager, "| compiled:", compiled)
sys.exit(eager != compiled)
