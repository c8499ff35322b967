"""No report known: soft_margin_loss of two dtypes has another dtype when compiled."""

import torch
from torch.nn import functional as F

x, y = torch.ones(4, dtype=torch.bfloat16), torch.ones(4)
eager, compiled = F.soft_margin_loss(x, y), torch.compile(F.soft_margin_loss)(x, y)
assert eager.dtype == compiled.dtype, f"{eager.dtype} in eager, {compiled.dtype} compiled"
