# With ties any of the equal positions is right; the value at it is what counts.
import sys

import torch


def f(x):
    return x.argmax(1), x.max(1).values, x.topk(2, 1).values


x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
index, largest, top = torch.compile(f)(x)
ok = torch.equal(x.gather(1, index[:, None])[:, 0], largest) and torch.equal(largest, x.max(1).values)
sys.exit(not (ok and torch.equal(top, x.topk(2, 1).values)))
