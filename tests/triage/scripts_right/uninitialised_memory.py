# torch.empty holds anything: only what was written may be read.
import torch


def f(x):
    out = torch.empty(4, 3)
    out[:2] = x
    out[2:] = -x
    return out, torch.empty_like(x).shape


x = torch.arange(6.0).view(2, 3)
(a, s), (b, t) = f(x), torch.compile(f)(x)
assert torch.equal(a, b) and s == t
