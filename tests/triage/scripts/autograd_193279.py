"""pytorch#193279: torch.func.grad of an autograd.Function: its own backward is dropped."""

import torch


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 7


def loss(x):
    return Straight.apply(x).sum()


x = torch.tensor([0.3, 1.7])
want = torch.func.grad(loss)(x)
got = torch.compile(torch.func.grad(loss))(x)
assert torch.equal(want, got), f"custom backward under torch.func.grad: eager {want.tolist()}, compiled {got.tolist()}"
