"""No report known: softshrink(nan)."""

import sys

import torch
import torch.nn.functional as F

x = torch.tensor([float("nan"), 1.0, 0.1])
want, got = F.softshrink(x), torch.compile(F.softshrink)(x)
print(want, got)
sys.exit(not torch.equal(want.isnan(), got.isnan()))
