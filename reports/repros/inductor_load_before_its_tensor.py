"""slice_scatter and a sum, unrolled: the load at a constant index keeps no mask and reads the four bytes before its tensor. Needs a GPU.

The line is in the kernel that an H200 recorded (torch 2.14.1). Without a GPU the same kernel is interpreted, and refused:
conformance run -b inductor -t sm_90 -m upstream.masked_reads.scattered_constants"""

import torch
from torch._inductor.utils import run_and_get_code


def total(x, y):
    return torch.slice_scatter(x, y, 0, 1, 4).sum()


_, sources = run_and_get_code(torch.compile(total), torch.randn(6, device="cuda"), torch.randn(3, device="cuda"))
lines = [line.strip() for source in sources for line in source.splitlines() if "tl.load" in line and "(-1))" in line]
raise SystemExit("\n".join(lines) or 0)
