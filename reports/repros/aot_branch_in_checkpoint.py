"""torch.cond inside a checkpoint, with gradients: AOTAutograd has no rule for it (2.11 has one)."""

import torch
from torch.utils.checkpoint import checkpoint


def region(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


x = torch.rand(3, requires_grad=True)
try:
    made = torch.compile(lambda x: checkpoint(region, x, use_reentrant=False))(x)
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error)[:200]}") from None
if not torch.allclose(torch.autograd.grad(made.sum(), x)[0], x.cos()):
    raise SystemExit(f"torch {torch.__version__}: another gradient")
