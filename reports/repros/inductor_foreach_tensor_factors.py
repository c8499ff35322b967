"""`torch._foreach_addcmul` and `_foreach_addcdiv` with their factors in a tensor do not compile: the fake tensor call raises."""

import torch


def products(x, y):
    return torch._foreach_addcmul([x, y], [x, y], [x, y], torch.tensor([0.5, 2.0]))


def quotients(x, y):
    return torch._foreach_addcdiv([x, y], [x, y], [x, y], torch.tensor([0.5, 2.0]))


x, y = torch.rand(4) + 1, torch.rand(3) + 1
found = []
for call in (products, quotients):
    torch._dynamo.reset()
    call(x, y)
    try:
        torch.compile(call)(x, y)
    except Exception as error:
        found.append(f"{call.__name__}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
