"""`list(thing)` of an object that has __iter__ and no __len__, and comes from outside of the program, is an InternalTorchDynamoError
(2.15: "has no len()"); in 2.11 `[*thing]` and `.extend(thing)` are."""

import torch


class Numbers:
    def __iter__(self):
        yield 1
        yield 2


def as_list(x, thing):
    return x + 1, list(thing)


def unpacked(x, thing):
    return x + 1, [*thing]


def extended(x, thing):
    numbers = []
    numbers.extend(thing)
    return x + 1, numbers


found = []
for call in (as_list, unpacked, extended):
    torch._dynamo.reset()
    try:
        got = torch.compile(call, backend="eager")(torch.ones(2), Numbers())[1]
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if got != [1, 2]:
        found.append(f"{call.__name__}: {got}, eager gives [1, 2]")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
