"""pytorch#188225: a constant subgraph that is NaN, and a softmax of it: the compiler raises."""

import torch


def f(x):
    ones = torch.ones(2, 2)
    constant = torch.arccosh(torch.log2(torch.atan2(ones, ones)))
    return torch.softmax(constant, -1) + x


assert torch.compile(f)(torch.zeros(2, 2)).isnan().all()
