# Equal seeds give equal numbers, two draws differ; the numbers need not be eager's.
import torch


def f(x):
    return x + torch.rand(8), torch.randn(8)


g = torch.compile(f)
torch.manual_seed(5)
a, b = g(torch.zeros(8))
c, d = g(torch.zeros(8))
torch.manual_seed(5)
e, h = g(torch.zeros(8))
assert torch.equal(a, e) and torch.equal(b, h), "equal seeds"
assert not torch.equal(a, c) and not torch.equal(b, d), "a second call draws other numbers"
assert a.min() >= 0 and a.max() < 1
