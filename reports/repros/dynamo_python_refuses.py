"""What Python refuses, and the program catches: Dynamo takes it (arguments for a class without `__init__`, a range with a step of zero, partial
of a number), or the error ends the call (`__weakref__`, a gradient of another size, a value that an enum has not). pytorch#165385 and
neighbours."""

import enum
import functools

import torch


class Plain:
    pass


class Kind(enum.Enum):
    FIRST = 1


def weakref(x, thing):
    thing.__weakref__ = None


def gradient(x, thing):
    x.grad = torch.ones(5)


def arguments(x, thing):
    Plain(1)


def step(x, thing):
    range(1, 2, 0)


def partial(x, thing):
    functools.partial(3)


def member(x, thing):
    Kind(3)


wrong = []
for attempt in (weakref, gradient, arguments, step, partial, member):

    def program(x, thing, attempt=attempt):
        try:
            attempt(x, thing)
        except Exception:
            return x + 1, "refused"
        return x - 1, "taken"

    torch._dynamo.reset()
    try:
        said = torch.compile(program, backend="eager")(torch.ones(2), Plain())[1]
    except Exception as error:
        said = f"{type(error).__name__} is not caught"
    if said != program(torch.ones(2), Plain())[1]:
        wrong.append(f"{attempt.__name__}: {said}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
