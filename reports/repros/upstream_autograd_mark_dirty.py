"""An autograd.Function that marks its input dirty returns another tensor in a compiled function. Needs torch
alone; exits 1 while it is so."""

import sys

import torch


class AddOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 7


def f(x):
    y = x * 1
    z = AddOne.apply(y)
    return z is y, (y * 1).sum()


res = []
for fn in (f, torch.compile(f)):
    x = torch.ones(2, requires_grad=True)
    same, s = fn(x)
    s.backward()
    res.append((same, x.grad.tolist()))
print(res)
sys.exit(res[0] != res[1])
