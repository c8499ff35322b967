"""A set with an `__iter__` of its own: `sum` of it, compiled, takes the elements of the plain set. A neighbour of pytorch#186671."""

import torch


class Other(set):
    def __iter__(self):
        return iter((7,))


def f(x, own):
    return x + sum(own)


eager, compiled = f(torch.zeros(2), Other({1, 2, 3})), torch.compile(f)(torch.zeros(2), Other({1, 2, 3}))
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: {compiled.tolist()}, eager {eager.tolist()}")
