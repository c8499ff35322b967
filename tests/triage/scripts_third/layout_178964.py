"""pytorch#178964: positions of each row's maximum of a transposed and a plain input are wrong."""

import torch


def f(a, b):
    return (a.T + b).max(dim=1).indices


torch.manual_seed(0)
a, b = torch.randn(8, 8), torch.randn(8, 8)
assert torch.equal(f(a, b), torch.compile(f)(a, b))
