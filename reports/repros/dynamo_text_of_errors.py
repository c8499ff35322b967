"""str() of an error that the program catches is another text than eager's: `no_such` for a missing attribute, nothing for that of a
module, the arguments of another error for a wrong keyword, Dynamo's own words for an op that was refused. See pytorch#197110."""

import math

import torch


def one(first):
    return first


ATTEMPTS = {
    "attribute": lambda x: (1).no_such,
    "module": lambda x: math.no_such(1),
    "keyword": lambda x: one(other=1),
    "view": lambda x: x.view(3),
}

found = []
for name, attempt in ATTEMPTS.items():

    def call(x, attempt=attempt):
        try:
            return x + 1, attempt(x)
        except Exception as error:
            return x + 1, str(error)

    torch._dynamo.reset()
    x = torch.ones(2)
    right = call(x)[1]
    try:
        given = torch.compile(call, backend="eager")(x)[1]
    except Exception as error:
        given = f"(not caught) {type(error).__name__}"
    if given != right:
        found.append(f"{name}: {given[:60]!r}, not {right[:60]!r}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
