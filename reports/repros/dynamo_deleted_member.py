"""`del module.a` of a buffer, a parameter or a submodule is not guarded: where there is none any more, eager raises AttributeError, and the
compiled program goes on. For attributes of plain objects it raises KeyError, for those of functions it cannot be compiled."""

import types

import torch
from torch import nn


def buffer():
    made = nn.Module()
    made.register_buffer("a", torch.ones(1))
    return made


def submodule():
    made = nn.Module()
    made.a = nn.ReLU()
    return made


def function():
    def made():
        pass

    made.a = 1
    return made


def namespace():
    return types.SimpleNamespace(a=1)


def program(x, thing):
    del thing.a
    return x + 1


def closure():
    number = 1

    def drop(x):
        nonlocal number
        del number
        return x + 1

    return drop


def twice(call, *args):
    seen = []
    for _ in range(2):
        try:
            call(*args)
            seen.append("deleted")
        except Exception as error:
            seen.append(type(error).__name__)
    return seen


found = []
for make in (buffer, submodule, namespace, function):
    torch._dynamo.reset()
    expected = twice(program, torch.ones(2), make())
    got = twice(torch.compile(program, backend="eager"), torch.ones(2), make())
    if got != expected:
        found.append(f"{make.__name__}: {got}, eager gives {expected}")
expected, got = twice(closure(), torch.ones(2)), twice(torch.compile(closure(), backend="eager"), torch.ones(2))
if got != expected:
    found.append(f"closure: {got}, eager gives {expected}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
