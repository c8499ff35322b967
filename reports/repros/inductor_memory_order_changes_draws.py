"""Inductor puts kernels into another order to save memory (reorder_for_peak_memory), random ones too: with fallback_random the numbers are not eager's.

Exits 1 while they are not."""

import sys

import torch
import torch._inductor.config as config

config.fallback_random = True


def program():
    return (
        torch.rand(4, 50),
        torch.randn(200),
        torch.randint(3, 9, (200,)),
        torch.randperm(40),
        torch.normal(0.0, 2.0, (200,)),
        torch.rand(4, 50, dtype=torch.float64),
        torch.empty(200).uniform_(2, 3),
    )


def drawn(function):
    torch.manual_seed(0)
    return function()


eager, compiled = drawn(program), drawn(torch.compile(program))
other = [index for index, pair in enumerate(zip(eager, compiled, strict=True)) if not torch.equal(*pair)]
print(f"outputs with other numbers: {other}")
sys.exit(1 if other else 0)
