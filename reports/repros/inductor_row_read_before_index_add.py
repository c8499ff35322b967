"""A tensor of one row is read by an index, then index_add_ writes to it: the fused program reads what was written."""

import torch


def before(total, index, x):
    old = total[index] * 2
    total.index_add_(0, index, x)
    return old


index, x = torch.zeros(9, dtype=torch.int64), torch.ones(9, 4)
eager, compiled = before(torch.ones(1, 4), index, x), torch.compile(before)(torch.ones(1, 4), index, x)
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager {eager[1].tolist()}, compiled {compiled[1].tolist()}")
