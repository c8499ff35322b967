"""pytorch#158566: an index taken from a scan's element, so that the body needs item()."""

import torch
from torch._higher_order_ops.scan import scan


def f(x, idx):
    def body(acc, i):
        acc = acc.clone()
        acc[i] = x[i] * 2
        return acc, i.clone()

    return scan(body, torch.zeros_like(x), idx)[0]


x, idx = torch.randn(4), torch.arange(4)
torch.testing.assert_close(torch.compile(f)(x, idx), x * 2)
