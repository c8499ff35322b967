"""A wrapper that is no leaf is written to by the program, and the caller's loss uses it, too: backward raises.

"During the backward, we encountered a tensor subclass where we guessed its metadata incorrectly. Expected: None (type Tensor)": for inputs
that were written to, the compiler expects a plain gradient. The class can do nothing: what is expected is no wrapper."""

import torch
from torch.testing._internal.two_tensor import TwoTensor


def program(x):
    x.mul_(2)
    return x.sin()


def gradient(call):
    leaf = TwoTensor(torch.ones(2), torch.ones(2)).requires_grad_()
    given = leaf * 1
    result = call(given)
    (result.sum() + given.sum()).backward()
    return leaf.grad.a


print("eager   ", gradient(program))
print("compiled", gradient(torch.compile(program, backend="aot_eager")))
