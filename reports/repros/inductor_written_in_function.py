"""An autograd function that writes to its result after it made it: the compiled program differentiates what is inside, and not as its backward
says. Neighbours of pytorch#180642 and #184113."""

import torch


class SavedAndWritten(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        made = x.exp()
        ctx.save_for_backward(made.clone())
        made.mul_(2)
        return made

    @staticmethod
    def backward(ctx, grad):
        (made,) = ctx.saved_tensors
        return grad * made * 7  # on purpose another gradient than that of the lines above


def gradient(call):
    x = torch.ones(3, requires_grad=True)
    call(x).sum().backward()
    return x.grad


eager, compiled = gradient(SavedAndWritten.apply), gradient(torch.compile(lambda x: SavedAndWritten.apply(x)))
if not torch.allclose(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: gradient {compiled.tolist()}, eager {eager.tolist()}")
