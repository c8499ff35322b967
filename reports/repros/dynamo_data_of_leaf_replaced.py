"""`x.data = other` inside the program: in eager the leaf still gets its gradient, compiled it gets none. torch 2.11."""

import torch


def program(x, other):
    x.data = other
    return x * 2


def gradient(program):
    x = torch.ones(3, requires_grad=True)
    return torch.autograd.grad(program(x, torch.zeros(3)).sum(), x, allow_unused=True)[0]


if gradient(program) is not None and gradient(torch.compile(program)) is None:
    raise SystemExit(f"torch {torch.__version__}: eager gives a gradient, compiled none")
