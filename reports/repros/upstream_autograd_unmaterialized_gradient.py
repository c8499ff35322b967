"""set_materialize_grads(False) has no effect in a compiled function: the backward is given zeros in place of None.
Needs torch alone; exits 1 while it is so."""

import sys

import torch


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if b is None:
            return a * 1000
        return a * 2 + b * 3


def run(fn):
    x = torch.ones(2, requires_grad=True)
    fn(x)[0].sum().backward()
    return x.grad


want, got = run(Two.apply), run(torch.compile(lambda x: Two.apply(x)))
print("unused output: eager's backward sees None:", want.tolist(), "compiled:", got.tolist())
sys.exit(not torch.equal(want, got))
