"""pytorch#194547: a sample of Normal(half, float32) has another dtype."""

import sys

import torch
from torch.distributions import Normal


def f(mu, sd):
    return Normal(mu, sd, validate_args=False).sample()


mu, sd = torch.zeros(4, dtype=torch.half), torch.ones(4)
want, got = f(mu, sd), torch.compile(f)(mu, sd)
print(want.dtype, got.dtype)
sys.exit(want.dtype != got.dtype)
