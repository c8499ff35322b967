"""pytorch#179571: cumsum of a constant with a dtype given is folded to int64."""

import torch


def f(x):
    return x + 1, torch.full((4,), 2, dtype=torch.uint8).cumsum(0, dtype=torch.uint8)


x = torch.randn(3)
for a, b in zip(f(x), torch.compile(f)(x), strict=True):
    torch.testing.assert_close(b, a, msg=lambda m: "cumsum of a constant, dtype given: " + m)
