"""avg_pool3d, lp_pool1d and lp_pool2d with ceil_mode: the gradient of the last window, which hangs over the edge, is divided by its whole size.

As avg_pool1d and avg_pool2d (pytorch#198119). Exits 1 while one of them is wrong."""

import sys

import torch
from torch.nn import functional as F

POOLS = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, 2, ceil_mode=True), (1, 2, 5, 7, 3)),
    "lp_pool1d": (lambda x: F.lp_pool1d(x, 2, 2, 2, True), (2, 3, 11)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 1, 2, 2, True), (2, 3, 11, 9)),
}
wrong = []
for name, (pool, shape) in POOLS.items():
    torch._dynamo.reset()
    x = torch.rand(shape) + 0.5
    gradients = []
    for program in (pool, torch.compile(pool)):
        given = x.clone().requires_grad_()
        program(given).sum().backward()
        gradients.append(given.grad)
    right = torch.allclose(*gradients, atol=1e-4)
    print(f"{name}: {'right' if right else 'wrong'}")
    wrong += [] if right else [name]
sys.exit(1 if wrong else 0)
