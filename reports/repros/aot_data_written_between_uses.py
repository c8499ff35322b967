"""A parameter is used, written to by way of `.data`, and used again: the backward says that it was modified by an inplace operation, where eager
goes on."""

import torch


def program(weight, x):
    first = weight + x
    weight.data.mul_(0.9)
    return first * weight.tanh()


told = []
for run in (program, torch.compile(program)):
    weight, x = torch.nn.Parameter(torch.linspace(-1, 1, 6)), torch.ones(6)
    run(weight, x).sum().backward()
    told.append(weight.grad)
if not torch.allclose(*told):
    raise SystemExit(f"torch {torch.__version__}: eager {told[0].tolist()}, compiled {told[1].tolist()}")
