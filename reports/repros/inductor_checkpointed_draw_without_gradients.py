"""torch.compile of a checkpointed function that draws random numbers fails where no input requires a gradient (an evaluation with dropout on,
a frozen model): "rematerialization in `forward-loss-backward` graph does not support RNG ops". There is no backward, and eager runs it. torch 2.13 to 2.15."""

import sys

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def dropped(x):
    return checkpoint(lambda y: F.dropout(y.sin(), 0.4, training=True), x, use_reentrant=False) + 1


x = torch.randn(4, 8)
assert dropped(x).shape == x.shape
try:
    torch.compile(dropped)(x)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[1]}")
    sys.exit(1)
