"""pytorch#192985: torch.func.jvp of an autograd.Function: its own jvp is dropped."""

import sys

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, t):
        return t * 100  # not the true derivative, so that it shows

    @staticmethod
    def backward(ctx, g):
        return g * 50


def f(x):
    return torch.func.jvp(Square.apply, (x,), (torch.ones_like(x),))[1]


x = torch.tensor(3.0)
want, got = f(x).item(), torch.compile(f)(x).item()
print("forward-mode derivative: eager", want, "compiled", got)
sys.exit(want != got)
