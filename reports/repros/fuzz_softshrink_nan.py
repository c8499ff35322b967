"""F.softshrink of NaN: NaN in eager, 0 when compiled by torch 2.11 to 2.13. A NaN is lost on the way.

Found by shape fuzzing on torch 2.11.0 (a generated graph, shrunk to one line); gone in 2.14.1. Needs torch alone; exits 1 while the
defect is there.
"""

import sys

import torch
from torch.nn import functional as F

x = torch.tensor([torch.nan, 1.0, -2.0, 0.1])
eager, compiled = F.softshrink(x), torch.compile(F.softshrink)(x)
print(f"eager: {eager.tolist()}; compiled: {compiled.tolist()}")
wrong = not torch.equal(eager.isnan(), compiled.isnan())
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
