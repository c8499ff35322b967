"""pytorch#189799: ceil, add zeros, reciprocal: the sign of zero is lost."""

import sys

import torch


class Bug(torch.nn.Module):
    def forward(self, x):
        return torch.reciprocal(torch.ceil(x) + torch.zeros_like(x))


x = torch.tensor([-0.5, -0.25, -0.75, 0.5])
want, got = Bug()(x), torch.compile(Bug())(x)
print("1/(ceil(x)+0): eager", want.tolist(), "compiled", got.tolist())
sys.exit(not torch.equal(want, got))
