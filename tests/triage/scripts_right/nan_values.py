# NaN compares unequal to itself; where it stands must agree, its bits need not.
import sys

import torch


def f(x):
    return torch.maximum(x, x.flip(0)), x.nan_to_num(5.0), x.amax(), torch.where(x.isnan(), 0.0, x), x.softmax(0)


x = torch.tensor([1.0, float("nan"), -2.0, float("inf"), float("-inf")])
ok = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(f(x), torch.compile(f)(x), strict=True))
sys.exit(not ok)
