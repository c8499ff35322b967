"""pytorch#194347: maximum of 0.0 and -0.0 has another sign when compiled."""

import torch


def f(x, y):
    return 1 / torch.maximum(x, y)


x, y = torch.tensor([0.0]), torch.tensor([-0.0])
assert torch.equal(f(x, y), torch.compile(f)(x, y)), (f(x, y), torch.compile(f)(x, y))
