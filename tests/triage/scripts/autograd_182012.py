"""pytorch#182012: gradients of diagonal_scatter."""

import sys

import torch


def f(x, d):
    return torch.diagonal_scatter(x, d).sum()


grads = []
for fn in (f, torch.compile(f)):
    x = torch.ones(4, 4, requires_grad=True)
    d = torch.zeros(4, requires_grad=True)
    fn(x, d).backward()
    grads.append((x.grad, d.grad))
bad = [n for n, a, b in zip("xd", *grads, strict=True) if not torch.equal(a, b)]
print("wrong gradients:", bad, grads[1][0].tolist() if bad else "")
sys.exit(bool(bad))
