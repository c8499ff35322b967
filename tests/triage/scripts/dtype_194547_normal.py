"""pytorch#194547: neighbour: torch.normal with a bfloat16 mean and a float32 deviation."""

import sys

import torch


def f(mean, std):
    return torch.normal(mean, std)


mean, std = torch.zeros(4, dtype=torch.bfloat16), torch.ones(4)
want, got = f(mean, std).dtype, torch.compile(f)(mean, std).dtype
print("normal(bfloat16, float32): eager", want, "compiled", got)
sys.exit(want is not got)
