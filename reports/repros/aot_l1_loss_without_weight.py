"""`F.l1_loss(x, y, weight=w)` does not look at the weight when compiled. Exits 1 while it does not."""

import sys

import torch
from torch.nn import functional as F


def program(x, y, w):
    return F.l1_loss(x, y, weight=w, reduction="none")


inputs = torch.zeros(3), torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
eager, compiled = program(*inputs), torch.compile(program, backend="aot_eager")(*inputs)
print(f"eager {eager.tolist()}, compiled {compiled.tolist()}")
sys.exit(0 if torch.equal(eager, compiled) else 1)
