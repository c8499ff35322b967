"""No report known: a second backward through a retained graph."""

import torch


def f(x, w):
    return torch.sigmoid(x @ w).pow(3).sum()


x = torch.full((2, 2), 0.5, requires_grad=True)
w = torch.eye(2)
loss = torch.compile(f)(x, w)
loss.backward(retain_graph=True)
first = x.grad.clone()
loss.backward()
assert torch.allclose(x.grad, 2 * first), "second backward through a retained graph"
