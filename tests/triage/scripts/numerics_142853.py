"""pytorch#142853: dropout2d with the same seed and random numbers left to eager."""

import sys

import torch

torch._inductor.config.fallback_random = True
m = torch.nn.Dropout2d(0.5)
x = torch.ones(2, 8, 3, 3)
torch.manual_seed(7)
want = m(x)
torch.manual_seed(7)
got = torch.compile(m)(x)
print("same seed, random numbers left to eager: equal", torch.equal(want, got))
sys.exit(not torch.equal(want, got))
