"""pytorch#138422: vmap over autograd.grad of a compiled output."""

import torch

f = torch.compile(lambda x: x**2)
x = torch.arange(3.0, requires_grad=True)
y = f(x)
rows = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))
assert torch.equal(rows, torch.diag(2 * x.detach()))
