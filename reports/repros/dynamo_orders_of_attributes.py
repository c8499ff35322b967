"""Attributes of an object of the caller are deleted and set, or new ones are set: `vars(held)` lists them in another order than Python, and the
object itself keeps a wrong order afterwards. No error."""

import torch


class Plain:
    def __init__(self):
        self.a, self.b, self.c = 1, 2, 3


def popped_and_set(x, held):
    held.__dict__.pop("a")
    held.a = 4
    return x + 1, list(held.__dict__)


def deleted_and_set(x, held):
    del held.a
    held.a = 4
    return x + 1, list(vars(held))


def new_names(x, held):
    held.z = 1
    held.y = 2
    return x + 1, list(vars(held))


def updated(x, held):
    held.__dict__.update({"z": 1, "b": 5})
    return x + 1, list(vars(held))


def cleared(x, held):
    held.__dict__.clear()
    held.c, held.a = 1, 2
    return x + 1, list(vars(held))


wrong = []
for program in (popped_and_set, deleted_and_set, new_names, updated, cleared):
    torch._dynamo.reset()
    told = []
    for run in (program, torch.compile(program, backend="eager")):
        held = Plain()
        told.append((run(torch.ones(2), held)[1], list(vars(held))))
    if told[0] != told[1]:
        wrong.append(f"{program.__name__}: eager {told[0]}, compiled {told[1]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(wrong))
