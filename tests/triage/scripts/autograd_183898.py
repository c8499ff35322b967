"""pytorch#183898: gradients of slice_scatter on a vector."""

import torch


def f(x, y):
    return torch.slice_scatter(x, y, 0, 1, 4).sum()


out = []
for fn in (f, torch.compile(f)):
    x = torch.arange(6.0, requires_grad=True)
    y = torch.arange(3.0, requires_grad=True)
    fn(x, y).backward()
    out.append(x.grad)
torch.testing.assert_close(out[1], out[0])
