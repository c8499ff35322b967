# The caller writes into an output; neither the input nor the next call may notice.
import torch


@torch.compile
def f(x):
    return x * 2, x + 1


x = torch.ones(4)
for _ in range(3):
    a, b = f(x)
    assert torch.equal(a, torch.full((4,), 2.0)) and torch.equal(b, torch.full((4,), 2.0))
    a.fill_(-1)
    b.add_(100)
assert torch.equal(x, torch.ones(4))
