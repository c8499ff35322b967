"""pytorch#193279: neighbour: per-sample gradients of an autograd.Function with generate_vmap_rule."""

import torch


class Gate(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 100


def per_sample(x):
    return torch.vmap(torch.func.grad(lambda y: Gate.apply(y)))(x)


x = torch.arange(3.0)
torch.testing.assert_close(torch.compile(per_sample)(x), per_sample(x))
