"""The value of `yield from` inside a compiled function: torch.compile raises (2.11, 2.12) or leaves the whole function to Python (2.13). Needs torch alone; exits 1 while it is so."""

import torch


def inner():
    yield 1
    return 9


def outer():
    result = yield from inner()
    yield result


def f(x):
    return x + sum(outer())


graphs = []


def kept(graph, inputs):
    graphs.append(graph)
    return graph


assert torch.compile(f, backend=kept)(torch.zeros(1)).item() == 10
assert graphs, "nothing was compiled"
