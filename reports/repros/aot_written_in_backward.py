"""A write to a saved tensor in backward that does not need the gradient has happened after the forward already."""

import torch


class Fills(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(k)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        ctx.saved_tensors[0].fill_(3.0)
        return gradient * 2, None


def program(x):
    k = torch.zeros(3)
    return Fills.apply(x, k) * 1, k


x = torch.ones(3, requires_grad=True)
got, want = torch.compile(program)(x)[1], program(x)[1]
if not torch.equal(got, want):
    raise SystemExit(f"torch {torch.__version__}: {got.tolist()} before the backward, eager has {want.tolist()}")
