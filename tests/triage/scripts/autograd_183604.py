"""pytorch#183604: one tensor given twice to an autograd.Function: only one of two gradient contributions arrives."""

import sys

import torch


class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


def grad(fn):
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    fn(x).sum().backward()
    return x.grad.tolist()


want, got = grad(lambda x: Mul.apply(x, x)), grad(torch.compile(lambda x: Mul.apply(x, x)))
print("d/dx of x*x: eager", want, "compiled", got)
sys.exit(want != got)
