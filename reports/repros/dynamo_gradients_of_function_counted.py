"""A torch.autograd.Function whose backward gives too few or too many gradients: eager refuses, compiled does not."""

import torch


class OneForTwo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return grad


class ThreeForTwo(OneForTwo):
    @staticmethod
    def backward(ctx, grad):
        return grad, grad, grad


def refuses(program) -> bool:
    torch._dynamo.reset()
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    try:
        torch.autograd.grad(program(x, y).sum(), (x, y), allow_unused=True)
    except Exception:
        return True
    return False


found = []
for function in (OneForTwo, ThreeForTwo):
    if refuses(function.apply) and not refuses(torch.compile(lambda x, y, function=function: function.apply(x, y))):
        found.append(function.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: eager refuses, compiled does not: {', '.join(found)}")
