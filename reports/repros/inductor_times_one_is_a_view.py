"""x[0] * 1.0 of an input that shares memory with a written one: eager gives a new tensor, compiled a view of the input. See pytorch#197893."""

import torch


def f(whole, rows):
    whole.add_(100)
    return rows[0] * 1.0


whole = torch.zeros(4, 6)
result = torch.compile(f)(whole, whole[1:])
whole.zero_()
if not torch.equal(result, torch.full((6,), 100.0)):
    raise SystemExit(f"torch {torch.__version__}: the result changed with the input: {result.tolist()}")
