"""pytorch#191821: a nested compile region does not see a global that is rebound between its calls."""

import sys

import torch

SCALE = 2.0


@torch.compiler.nested_compile_region
def region(x):
    return x * SCALE


@torch.compile
def f(x):
    global SCALE
    out = []
    for s in (2.0, 3.0, 4.0):
        SCALE = s
        out.append(region(x))
    return torch.stack(out)


got = f(torch.ones(1)).flatten().tolist()
print(got)
sys.exit(got != [2.0, 3.0, 4.0])
