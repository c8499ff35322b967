"""The greatest length of a deque that the caller gives is not guarded, and `appendleft` of a full deque drops nothing: the deque is what the
first call made of the first one. No error."""

import collections

import torch


def length(x, d):
    return x + 1, d.maxlen


def left(x, d):
    d.appendleft(0)
    return x + 1, list(d)


found = []
torch._dynamo.reset()
compiled = torch.compile(length, backend="eager")
said = [compiled(torch.zeros(1), collections.deque([1, 2], size))[1] for size in (None, 5, 2)]
if said != [None, 5, 2]:
    found.append(f"maxlen is {said}")
torch._dynamo.reset()
compiled, mine, theirs = (
    torch.compile(left, backend="eager"),
    collections.deque([1, 2, 3], 4),
    collections.deque([1, 2, 3], 4),
)
for _ in range(3):
    left(torch.zeros(1), theirs)
    compiled(torch.zeros(1), mine)
if mine != theirs:
    found.append(f"appendleft gives {list(mine)} and not {list(theirs)}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
