"""pytorch#198031: a clone is dropped although a custom op that writes the original reads it."""

import sys

import torch


@torch.library.custom_op("corpus198031::flip_into", mutates_args=("dst",))
def flip_into(src: torch.Tensor, dst: torch.Tensor) -> None:
    n = len(src)
    for i in range(n):
        dst[n - 1 - i] = src[i]


def f(x):
    keep = x.clone()
    flip_into(keep, x)
    return x + 0


a, b = torch.arange(6.0), torch.arange(6.0)
f(a)
torch.compile(f)(b)
print(a.tolist(), b.tolist())
sys.exit(not torch.equal(a, b))
