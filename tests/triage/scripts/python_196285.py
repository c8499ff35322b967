"""pytorch#196285: list.pop with an index that comes from a dynamic size."""

import torch


def f(x, items):
    items = list(items)
    return x + items.pop(x.shape[0] - 3)


c = torch.compile(f, dynamic=True)
for n in (4, 5):
    x = torch.zeros(n)
    assert torch.equal(f(x, [1, 2, 3]), c(x, [1, 2, 3]))
