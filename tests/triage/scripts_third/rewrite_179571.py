"""pytorch#179571: a constant is summed up in uint8; compiled, the dtype of the sum is lost."""

import torch


def positions(x):
    return x + 1, torch.full((4,), 2, dtype=torch.uint8).cumsum(0, dtype=torch.uint8)


x = torch.zeros(3)
(_, want), (_, got) = positions(x), torch.compile(positions)(x)
print("eager", want.dtype, "compiled", got.dtype)
raise SystemExit(want.dtype is not got.dtype)
