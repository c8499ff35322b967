"""pytorch#183898: gradients of slice_scatter and a sum over everything."""

import torch


def loss(x, y):
    return torch.slice_scatter(x, y, 0, 1, 4).sum()


def gradients(function):
    torch.manual_seed(0)
    x, y = torch.randn(6, requires_grad=True), torch.randn(3, requires_grad=True)
    function(x, y).backward()
    return x.grad.tolist(), y.grad.tolist()


want, got = gradients(loss), gradients(torch.compile(loss))
assert want == got, f"{want} {got}"
