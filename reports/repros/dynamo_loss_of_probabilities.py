"""cross_entropy of class probabilities with weights does not compile where sizes are not known. See pytorch#182399."""

import torch
from torch.nn import functional as F

scores, target, weight = torch.randn(4, 3), torch.rand(4, 3), torch.tensor([1.0, 2.0, 3.0])
loss = torch.compile(lambda x, y, w: F.cross_entropy(x, y, weight=w, reduction="none"), dynamic=True)
try:
    loss(scores, target, weight)
except RuntimeError as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error).splitlines()[0]}") from None
