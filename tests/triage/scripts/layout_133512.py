"""pytorch#133512: index_copy_ on a transposed input, whose layout eager keeps."""

import sys

import torch


def f(cache, i, v):
    cache.index_copy_(0, i, v)
    return cache * 2


base = torch.zeros(3, 4)
i, v = torch.tensor([1]), torch.ones(1, 3)
want = f(base.clone().t(), i, v)
got = torch.compile(f)(base.clone().t(), i, v)
print("strides: eager", want.stride(), "compiled", got.stride())
sys.exit(want.stride() != got.stride() or not torch.equal(want, got))
