"""pytorch#143649: floor division of integers by zero: eager raises."""

import torch


def f(a, b):
    return a // b


a, b = torch.arange(4), torch.tensor([2, 1, 0, 3])
try:
    f(a, b)
    raise SystemExit(0) from None
except RuntimeError:
    pass
try:
    print(torch.compile(f)(a, b))
except RuntimeError:
    raise SystemExit(0) from None
raise SystemExit(1)
