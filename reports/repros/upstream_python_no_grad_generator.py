"""What a generator under no_grad yields requires a gradient in a compiled function. Needs torch alone; exits 1
while it is so."""

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
