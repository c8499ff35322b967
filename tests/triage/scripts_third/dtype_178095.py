"""pytorch#178095: a bool tensor converted to float8: the compiler raises."""

import torch


def f(x):
    return x.to(torch.float8_e4m3fn).float()


x = torch.tensor([True, False] * 8)
assert torch.equal(torch.compile(f)(x), f(x))
