"""The copy of a transposed tensor, a slice of it assigned, then masked_fill_: eager keeps the strides of the copy, compiled they are contiguous."""

import torch


def program(x, mask):
    x = x.clone()
    x[:, 1::2] = torch.where(mask[:, None], x[:, ::2], x[:, 1::2])
    return x.masked_fill_(mask[:, None], 3.0)


x, mask = torch.randn(32, 33).t(), torch.arange(33) % 3 == 0
made, expected = torch.compile(program)(x, mask), program(x, mask)
if made.stride() != expected.stride():
    raise SystemExit(f"torch {torch.__version__}: strides {made.stride()}, in eager {expected.stride()}")
