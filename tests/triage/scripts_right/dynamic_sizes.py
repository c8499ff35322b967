import torch


def f(x):
    n = x.shape[0]
    y = x.reshape(-1, 2) * n
    return torch.cat([y, y[: n // 2]]), y.shape[0] + n


c = torch.compile(f, dynamic=True)
for n in (4, 6, 10, 2, 4):
    x = torch.arange(2.0 * n).view(n, 2)
    (a, k), (b, m) = f(x), c(x)
    assert torch.equal(a, b) and k == m
