"""pytorch#183606: frac(-0.0) has another sign of zero."""

import sys

import torch

x = torch.tensor([-0.0, 0.0, -3.0])
want = 1 / torch.frac(x)
got = torch.compile(lambda t: 1 / torch.frac(t))(x)
print(want, got)
sys.exit(not torch.equal(want, got))
