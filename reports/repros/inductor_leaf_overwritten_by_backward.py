"""A parameter is used, written to in part without gradients, and used again: the backward writes the gradient over the parameter itself. The
values of the forward and the gradient are right; no error."""

import torch


def program(weight, x):
    first = weight * 3
    with torch.no_grad():
        weight[1:].add_(x[:2])
    return first + weight.exp() * x


told = []
for run in (program, torch.compile(program)):
    torch.manual_seed(0)
    weight, x = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
    result = run(weight, x)
    before = weight.detach().clone()
    result.sum().backward()
    told.append((torch.equal(weight, before), torch.equal(weight, weight.grad)))
if told[0] != told[1]:
    raise SystemExit(f"torch {torch.__version__}: (parameter kept, parameter is its gradient): eager {told[0]}, compiled {told[1]}")
