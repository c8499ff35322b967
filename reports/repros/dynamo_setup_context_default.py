"""An autograd.Function whose forward has a default: eager gives setup_context the default with the inputs, the compiled program leaves it out,
and the backward computes something else. No error. See pytorch#108529, which is about eager."""

import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x, by=2):
        return x * by

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, grad):
        return (grad * ctx.count, None)[: ctx.count]


def gradient(call):
    x = torch.ones(2, requires_grad=True)
    call(x).sum().backward()
    return x.grad.tolist()


expected, got = (
    gradient(lambda x: Scaled.apply(x)),
    gradient(torch.compile(lambda x: Scaled.apply(x), backend="aot_eager")),
)
if got != expected:
    raise SystemExit(f"torch {torch.__version__}: the gradient is {got}, eager gives {expected}")
