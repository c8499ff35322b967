"""pytorch#191582: a while_loop whose body writes into a clone at a tensor index."""

import torch


def f(i, x):
    def cond(i, x):
        return i < 3

    def body(i, x):
        y = x.clone()
        y[i] = 1.0
        return i + 1, y

    return torch.while_loop(cond, body, (i, x))


i, x = torch.tensor(0), torch.zeros(5)
want, got = f(i, x), torch.compile(f)(i, x)
for p, q in zip(want, got, strict=True):
    torch.testing.assert_close(q, p)
