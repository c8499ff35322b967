"""With symbolic sizes, the backward of a grouped conv1d and batch norm asserts the strides of the first size when the second one comes."""

import sys

import torch
from torch.nn import functional as F


def f(x):
    kernel = torch.ones(4, 1, 3) / 3
    return F.batch_norm(F.conv1d(x.unflatten(0, (-1, 4)), kernel, padding=1, groups=4), None, None, training=True).relu()


compiled = torch.compile(f, dynamic=True)
try:
    for rows, columns in ((8, 16), (12, 17)):
        compiled(torch.randn(rows, columns, requires_grad=True)).sum().backward()
except AssertionError as error:
    print("AssertionError:", str(error).splitlines()[0])
    sys.exit(1)
