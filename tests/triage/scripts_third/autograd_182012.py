"""pytorch#182012: gradients of diagonal_scatter and a sum over everything."""

import torch

torch.manual_seed(0)
want, got = [], []
for seen, wrap in ((want, lambda f: f), (got, torch.compile)):
    x, y = torch.randn(4, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    wrap(lambda x, y: torch.diagonal_scatter(x, y).sum())(x, y).backward()
    seen += [x.grad, y.grad]
for a, b in zip(want, got, strict=True):
    torch.testing.assert_close(b, a)
