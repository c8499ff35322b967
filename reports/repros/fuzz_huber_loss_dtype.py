"""F.huber_loss of two dtypes: eager's result has the dtype of the first argument, the compiled one that of both promoted.

The decomposition of huber_loss computes with the promoted dtype and does not go back. Found by shape fuzzing on torch 2.15.0 (a
generated graph, shrunk to one line). Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch
from torch.nn import functional as F

wrong = False
for first, second in ((torch.float16, torch.float64), (torch.float32, torch.float64), (torch.bfloat16, torch.float32)):
    torch._dynamo.reset()
    x, y = torch.linspace(0, 1, 4).to(first), torch.linspace(1, 0, 4).to(second)
    eager = F.huber_loss(x, y, reduction="none")
    compiled = torch.compile(F.huber_loss)(x, y, reduction="none")
    wrong |= eager.dtype != compiled.dtype
    print(f"huber_loss({first}, {second}): eager {eager.dtype}, compiled {compiled.dtype}")
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
