"""A program sets `__defaults__`, `__kwdefaults__` or `__code__` of a function and calls it: the old ones are used. No error."""

import torch


def defaults(x):
    def inner(by=1):
        return by

    inner.__defaults__ = (5,)
    return x * inner()


def keyword_defaults(x):
    def inner(*, by=1):
        return by

    inner.__kwdefaults__ = {"by": 5}
    return x * inner()


def code(x):
    def inner():
        return 1

    def other():
        return 5

    inner.__code__ = other.__code__
    return x * inner()


found = []
for call in (defaults, keyword_defaults, code):
    torch._dynamo.reset()
    got = torch.compile(call, backend="eager")(torch.ones(2)).tolist()
    if got != [5, 5]:
        found.append(f"{call.__name__}: {got}, eager gives [5.0, 5.0]")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
