"""What a program does to the caller's set whose class is a subclass of set is lost: add, discard, update, `|=`. No error."""

import torch


class OwnSet(set):
    pass


def add(x, s):
    s.add(4)
    return x + 1


def discard(x, s):
    s.discard(1)
    return x + 1


def union(x, s):
    s |= {5}
    return x + 1


found = []
for call in (add, discard, union):
    torch._dynamo.reset()
    mine, theirs = OwnSet([1, 2]), OwnSet([1, 2])
    torch.compile(call, backend="eager")(torch.zeros(1), mine)
    call(torch.zeros(1), theirs)
    if mine != theirs:
        found.append(f"{call.__name__} leaves {set(mine)}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
