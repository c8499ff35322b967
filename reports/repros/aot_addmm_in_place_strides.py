"""addmm_ into a tensor that lies like a transposed one: in eager it stays as it lies, compiled it is contiguous."""

import torch


def program(bias, x, y):
    return bias.clone().addmm_(x, y)


given = torch.rand(3, 2).T, torch.rand(2, 1), torch.rand(1, 3)
made, expected = torch.compile(program)(*given), program(*given)
if made.stride() != expected.stride():
    raise SystemExit(f"torch {torch.__version__}: strides {made.stride()}, in eager {expected.stride()}")
