"""`d.popitem()` of the caller's dict whose item is not used takes an item away in the first call alone: the second call runs what was
compiled for the first dict and leaves the dict as it is. No error."""

import collections

import torch


def pop(x, d):
    d.popitem()
    return x + 1


def pop_first(x, d):
    d.popitem(last=False)
    return x + 1


found = []
for call, made in ((pop, dict), (pop, collections.OrderedDict), (pop_first, collections.OrderedDict)):
    torch._dynamo.reset()
    d = made(p=1, q=2, r=3, s=4)
    compiled = torch.compile(call, backend="eager")
    for _ in range(3):
        compiled(torch.zeros(1), d)
    if len(d) != 1:
        found.append(f"{call.__name__} of {made.__name__} leaves {list(d)}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
