"""// of an infinity is NaN, of a number by an infinity of the other sign -1; compiled it is not. A neighbour of pytorch#197895."""

import torch


def floored(x, y):
    return x // y


infinity = float("inf")
x = torch.tensor([infinity, -3.0, 3.0, -infinity, -1.0])
y = torch.tensor([2.0, infinity, -infinity, -2.0, 0.0])
eager, compiled = floored(x, y), torch.compile(floored)(x, y)
if not torch.equal(eager.nan_to_num(7.0), compiled.nan_to_num(7.0)):
    raise SystemExit(f"torch {torch.__version__}: eager {eager.tolist()}, compiled {compiled.tolist()}")
