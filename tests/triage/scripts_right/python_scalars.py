import sys

import torch


@torch.compile
def f(x, k, name, flag, none=None):
    y = x * k + len(name)
    return y if flag else -y, k * 2, name.upper(), none


for k in (2, 3, 2.5, 4):
    for flag in (True, False):
        y, doubled, upper, none = f(torch.ones(2), k, "ab", flag)
        expected = (1 * k + 2) * (1 if flag else -1)
        if y.tolist() != [expected, expected] or doubled != k * 2 or upper != "AB" or none is not None:
            print("wrong for", k, flag, y)
            sys.exit(1)
