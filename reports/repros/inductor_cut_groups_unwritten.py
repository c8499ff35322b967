"""`x.repeat_interleave(9)[:100] + 1` on the CPU: the last, incomplete group is never written, and holds what was in memory. The loop over 100
elements with the index `i // 9` is split into 100 // 9 = 11 times 9 without asking whether 9 divides 100. Next of kin: pytorch#195582."""

import torch
from torch.nn import functional as F


def repeated(x):
    return x[:, None].expand(16, 9).reshape(-1)[:100] + 1


def looked_up(x):
    return x[torch.arange(100) // 9] * 2


def sliced(x):
    return (torch.ones(16, 9) * x[:, None]).view(-1)[:100] + 1


def cropped(x):
    return F.pad((torch.ones(16, 9) * x[:, None]).view(-1), (0, -44))


found = []
for call in (repeated, looked_up, sliced, cropped):
    torch._dynamo.reset()
    x = torch.rand(16) + 1
    junk = [torch.full((100,), -1e9) for _ in range(8)]  # what is not written should not look right by chance
    del junk
    if not torch.equal(call(x), torch.compile(call)(x)):
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: elements are not written: " + ", ".join(found))
