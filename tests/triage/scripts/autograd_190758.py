"""pytorch#190758: activation_memory_budget 0: dropout is recomputed in the backward with other random numbers."""

import sys

import torch
import torch._functorch.config

torch._functorch.config.activation_memory_budget = 0.0


def f(x, w):
    return torch.nn.functional.dropout(torch.sin(x @ w), 0.5).sum(), torch.nn.functional.dropout(torch.sin(x), 0.5)


def g(x):
    return torch.nn.functional.dropout(torch.sin(x), 0.5)


torch.manual_seed(0)
x = torch.rand(64, 64) + 0.5
x.requires_grad_()
y = torch.compile(g)(x)
y.sum().backward()
kept = y.detach() != 0
got = x.grad != 0
print("elements whose mask differs between forward and backward:", (kept != got).sum().item())
sys.exit(not torch.equal(kept, got))
