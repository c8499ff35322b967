import torch


def make(k):
    hits = []

    def f(x):
        hits.append(k)
        squares = (x * i for i in range(k))
        return sum(squares), list(reversed(hits)), {name: i for i, name in enumerate("abc")}

    return f


eager, compiled = make(3), torch.compile(make(3))
for _ in range(3):
    (a, h, d), (b, i, e) = eager(torch.ones(2)), compiled(torch.ones(2))
    assert torch.equal(a, b) and h == i and d == e, (h, i)
