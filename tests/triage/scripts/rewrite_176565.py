"""pytorch#176565: a cast to half and back is removed although values overflow."""

import sys

import torch


def f(x):
    return x.half().float()


x = torch.tensor([1e6, 3.14159, -7e4])
want, got = f(x), torch.compile(f)(x)
print("float32 through float16 and back: eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want.isinf(), got.isinf()))
