"""A metaclass whose __call__ gives one object only: two calls of its class give two objects. __getattr__ of a metaclass is asked for
attributes of the objects, too, which Python does not do. No error."""

import torch


class Single(type):
    made = {}

    def __call__(cls):
        if cls not in Single.made:
            Single.made[cls] = super().__call__()
        return Single.made[cls]


class Answers(type):
    def __getattr__(cls, name):
        return name.upper()


class OnlyOne(metaclass=Single):
    pass


class Answered(metaclass=Answers):
    pass


def one(x):
    return x + 1, OnlyOne() is OnlyOne()


def answered(x):
    try:
        return x + 1, Answered().name
    except AttributeError:
        return x + 1, "no such attribute"


found = []
for call in (one, answered):
    torch._dynamo.reset()
    _, given = torch.compile(call, backend="eager")(torch.ones(2))
    _, right = call(torch.ones(2))
    if given != right:
        found.append(f"{call.__name__} gives {given!r}, not {right!r}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))
