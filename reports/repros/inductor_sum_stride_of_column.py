"""A column that was a row keeps its strides in x + 1; the compiled program reads others. A neighbour of pytorch#197815 (ones_like)."""

import torch


def strides(x):
    return (x + 1).stride()


x = torch.ones(1, 5).t()
eager, compiled = strides(x), torch.compile(strides)(x)
if eager != compiled:
    raise SystemExit(f"torch {torch.__version__}: eager {eager}, compiled {compiled}")
