"""torch.cat of an empty tensor and a transposed one: eager's result is contiguous, the compiled one keeps the transposed strides.

Inductor drops the empty part and returns a copy of the other in that one's own layout. Found by shape fuzzing on torch 2.15.0
(`edge.zero_size` with a transposed input). Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


def cat(x, y):
    return torch.cat((x, y))


x, y = torch.empty(0, 2), torch.arange(6.0).reshape(2, 3).t()
eager, compiled = cat(x, y), torch.compile(cat)(x, y)
print(f"eager: strides {eager.stride()}; compiled: {compiled.stride()}; equal values: {torch.equal(eager, compiled)}")
wrong = eager.stride() != compiled.stride()
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)
