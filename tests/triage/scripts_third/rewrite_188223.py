"""pytorch#188223: take by a random permutation of a tensor that was written in place: the compiler raises."""

import torch


def f(x):
    y = torch.sigmoid_(x)
    return torch.take(y, torch.randperm(10))


result = torch.compile(f)(torch.rand(4, 32, dtype=torch.float16))
assert result.shape == (10,)
