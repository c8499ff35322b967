"""An attribute that a list, a dict, a tuple or a NumPy array does not have is there: `except AttributeError` is not taken. No error. See
pytorch#198197, which is about builtin types."""

import operator

import torch


def make(value):
    def call(x):
        try:
            value.no_such_name  # noqa: B018
        except AttributeError:
            return x + 1, "is not there"
        return x + 2, "is there"

    return call


def inside(x):
    try:
        [1, 2].no_such_name  # noqa: B018
    except AttributeError:
        return x + 1, "is not there"
    return x + 2, "is there"


found = []
for name, call in (
    ("[1, 2]", inside),
    ("a list", make([1])),
    ("a dict", make({"a": 1})),
    ("a tuple", make((1,))),
    ("operator.add", make(operator.add)),
):
    torch._dynamo.reset()
    try:
        if torch.compile(call, backend="eager")(torch.zeros(1))[1] != "is not there":
            found.append(name)
    except Exception as error:
        found.append(f"{name} ({type(error).__name__})")
if found:
    raise SystemExit(f"torch {torch.__version__}: no AttributeError: " + ", ".join(found))
