"""pytorch#177517: two conditions of a while_loop joined by `and`."""

import torch


def f(n, x):
    def cond(n, x):
        return (n > 0).logical_and(x.sum() < 100)

    return torch.while_loop(cond, lambda n, x: (n - 1, x * 2), (n, x))


def g(n, x):
    def cond(n, x):
        return n > 0 and x.sum() < 100

    return torch.while_loop(cond, lambda n, x: (n - 1, x * 2), (n, x))


n, x = torch.tensor(5), torch.ones(3)
for h in (f, g):
    want, got = h(n, x), torch.compile(h)(n, x)
    for p, q in zip(want, got, strict=True):
        torch.testing.assert_close(q, p)
