"""pytorch#191110: the ambient autocast dtype changes between two calls while autocast itself is off outside."""

import sys

import torch


@torch.compile
def f(a, b):
    with torch.autocast("cpu"):
        return a @ b


x = torch.ones(4, 4)
got = []
for dtype in (torch.bfloat16, torch.float16):
    torch.set_autocast_dtype("cpu", dtype)
    got.append(f(x, x).dtype)
print(got)
sys.exit(got != [torch.bfloat16, torch.float16])
