"""F.soft_margin_loss of two dtypes: eager's result has the dtype of the first argument, the compiled one that of both promoted.

The same class as `fuzz_huber_loss_dtype.py`. Found by `conformance ops` (form `mixed`) on torch 2.15.0. Needs torch alone; exits 1 while
the defect is there.
"""

import sys

import torch
from torch.nn import functional as F

x, y = torch.ones(4, dtype=torch.bfloat16), torch.ones(4)
eager, compiled = F.soft_margin_loss(x, y), torch.compile(F.soft_margin_loss)(x, y)
print("torch", torch.__version__, "| eager:", eager.dtype, "| compiled:", compiled.dtype)
sys.exit(eager.dtype != compiled.dtype)
