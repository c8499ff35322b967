"""A forward hook with always_call=True is not called where forward raises and the program catches it."""

import torch
from torch import nn


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("no")


def told(compiled):
    module, calls = Raises(), []
    module.register_forward_hook(lambda *given: calls.append("hook"), always_call=True)

    def program(x):
        try:
            return module(x)
        except ValueError:
            return x * 2

    torch.compiler.reset()
    (torch.compile(program) if compiled else program)(torch.ones(3))
    return calls


got, want = told(True), told(False)
if got != want:
    raise SystemExit(f"torch {torch.__version__}: {got}, eager gives {want}")
