"""multilabel_margin_loss where the list of classes ends with -1: another value and another gradient. pytorch#185464, #141017."""

import torch
from torch.nn import functional as F

classes = torch.tensor([[0, 1, -1], [1, -1, -1]])
x = torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
eager, compiled = F.multilabel_margin_loss(x, classes), torch.compile(F.multilabel_margin_loss)(x, classes)
if not torch.allclose(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: {compiled.item()}, eager {eager.item()}")
