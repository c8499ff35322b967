"""`vars()` of a `types.SimpleNamespace` that the program makes is empty. No error. A neighbour of pytorch#193719, which added the class."""

import types

import torch


def call(x):
    return x + 1, vars(types.SimpleNamespace(a=1))


said = torch.compile(call, backend="eager")(torch.zeros(1))[1]
if said != {"a": 1}:
    raise SystemExit(f"torch {torch.__version__}: {said}")
