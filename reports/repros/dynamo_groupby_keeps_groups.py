"""A group of `itertools.groupby` is empty once the next group is taken; compiled, it still has its elements. No error."""

import itertools

import torch


def call(x):
    groups = itertools.groupby([1, 1, 2])
    _, first = next(groups)
    _, second = next(groups)
    return x + 1, list(first), list(second)


said = torch.compile(call, backend="eager")(torch.zeros(1))[1:]
if said != call(torch.zeros(1))[1:]:
    raise SystemExit(f"torch {torch.__version__}: {said}")
