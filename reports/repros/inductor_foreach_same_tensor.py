"""`torch._foreach_add_([x, x], 1.0)`, and a list of views with a common row: eager writes twice, the compiled program once. No error."""

import torch


def twice(x):
    torch._foreach_add_([x, x], 1.0)


def overlapping(x):
    torch._foreach_add_([x[:2], x[1:]], 1.0)


found = []
for call in (twice, overlapping):
    torch._dynamo.reset()
    eager, compiled = torch.zeros(3, 4), torch.zeros(3, 4)
    call(eager)
    torch.compile(call)(compiled)
    if not torch.equal(eager, compiled):
        found.append(f"{call.__name__} {compiled[:, 0].tolist()}, eager {eager[:, 0].tolist()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
