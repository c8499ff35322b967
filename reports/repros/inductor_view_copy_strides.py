"""`torch.view_copy(x, torch.int32)` of a transposed float32 matrix: eager's copy is contiguous, the compiled one has the strides of x."""

import torch


def copy(x):
    return torch.view_copy(x, torch.int32)


x = torch.randn(6, 4).t()
eager, compiled = copy(x), torch.compile(copy)(x)
if eager.stride() != compiled.stride():
    raise SystemExit(f"torch {torch.__version__}: strides {compiled.stride()}, eager {eager.stride()}")
