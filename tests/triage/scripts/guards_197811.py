"""pytorch#197811: closures over different slot wrappers of Tensor share one compiled graph."""

import sys

import torch


def make(method):
    def apply(a, b):
        return method(a, b)

    return apply


a, b = torch.tensor(6.0), torch.tensor(3.0)
out = []
for m in (torch.Tensor.__add__, torch.Tensor.__mul__, torch.Tensor.__sub__):
    f = make(m)
    out.append((f(a, b).item(), torch.compile(f)(a, b).item()))
print("eager, compiled:", out)
sys.exit(any(e != c for e, c in out))
