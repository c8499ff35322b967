"""`x[0] = 5.0; return x.clone()` gives the caller's own x: what is written to the copy is written to the input, and a later call changes
what an earlier one gave. No error. See pytorch#195451."""

import torch


def write(x):
    x[0] = 5.0
    return x.clone()


def put(x):
    x[torch.tensor([0, 2])] = 5.0
    return x.clone()


found = []
for call in (write, put):
    torch._dynamo.reset()
    x = torch.randn(4, 3)
    copy = torch.compile(call)(x)
    copy.zero_()
    if not x.any():
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: the copy is the input itself: " + ", ".join(found))
