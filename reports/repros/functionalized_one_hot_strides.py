"""one_hot of transposed classes has a contiguous result in eager, and one with the order of its input when compiled: .view(-1) then fails,
or not, by who runs it. OneHotCategorical.sample has it, too."""

import torch
from torch.nn import functional as F

classes = torch.tensor([[0, 1, 2], [2, 1, 0]])
call = torch.compile(lambda x: F.one_hot(x.t(), 3), backend="aot_eager")
eager, compiled = F.one_hot(classes.t(), 3).stride(), call(classes).stride()
if eager != compiled:
    raise SystemExit(f"torch {torch.__version__}: strides {compiled}, eager has {eager}")
