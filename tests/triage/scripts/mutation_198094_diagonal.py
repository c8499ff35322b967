"""pytorch#198094: the same with diagonal_scatter and copy_."""

import sys

import torch


@torch.compile
def step(state, diag):
    before = torch.diagonal_scatter(state, diag)
    state.copy_(torch.zeros_like(state))
    return before


state = torch.rand(5, 5) + 1
expected = torch.diagonal_scatter(state, torch.arange(5.0))
out = step(state, torch.arange(5.0))
bad = (out != expected).sum().item()
print(f"{bad} of 25 elements differ")
sys.exit(bad > 0)
