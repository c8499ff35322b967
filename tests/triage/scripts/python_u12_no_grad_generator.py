"""No report known: a generator function decorated with no_grad."""

import sys

import torch


def f(x):
    @torch.no_grad()
    def parts():
        for k in range(2):
            yield x * k

    return list(parts())


x = torch.ones(2, requires_grad=True)
want, got = [t.requires_grad for t in f(x)], [t.requires_grad for t in torch.compile(f)(x)]
print("requires_grad of what a no_grad generator yields: eager", want, "compiled", got)
sys.exit(want != got)
