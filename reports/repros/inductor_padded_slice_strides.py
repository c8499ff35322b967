"""With symbolic sizes, a slice of a padded tensor has other strides than in eager, where it is a view of the padded one."""

import sys

import torch
from torch.nn import functional as F


def f(x):
    groups = F.pad(x, (0, -x.shape[1] % 8), value=1.0).unflatten(1, (-1, 8))
    return (groups - groups.mean(-1, keepdim=True)).flatten(1)[:, : x.shape[1]]


x = torch.randn(16, 17)
want, got = f(x).stride(), torch.compile(f, dynamic=True)(x).stride()
print("strides: eager", want, "compiled", got)
sys.exit(want != got)
