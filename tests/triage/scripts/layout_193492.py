"""pytorch#193492: argmax after an adaptive pooling of a transposed input."""

import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)


def f(x):
    return F.adaptive_avg_pool1d(x.transpose(0, 1), 2).argmax()


c = torch.compile(f)
bad = 0
for _ in range(4):
    x = torch.randn(6, 9)
    bad += int(f(x)) != int(c(x))
print(bad, "of 4 positions are wrong")
sys.exit(bad > 0)
