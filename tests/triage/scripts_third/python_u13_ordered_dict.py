"""No report known: the order of an OrderedDict is not guarded."""

import collections

import torch

weights = collections.OrderedDict(a=1.0, b=2.0)


@torch.compile
def first(x):
    return x * next(iter(weights.values()))


assert first(torch.ones(1)).item() == 1.0
weights.move_to_end("a")
assert first(torch.ones(1)).item() == 2.0, "the order of before is used"
