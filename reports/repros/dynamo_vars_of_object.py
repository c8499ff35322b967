"""vars(obj) of an object that the program makes is {} in what the caller gets, where its attributes were set by setattr(), by
object.__setattr__ (frozen dataclasses do) or through __dict__. No error."""

import dataclasses

import torch


class Plain:
    pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    number: int = 1


def by_setattr(x):
    made = Plain()
    for name in ("number",):
        setattr(made, name, 3)
    return x + 1, vars(made)


def by_dict(x):
    made = Plain()
    made.__dict__["number"] = 3
    return x + 1, vars(made)


def frozen(x):
    return x + 1, vars(Frozen(3))


found = []
for call in (by_setattr, by_dict, frozen):
    torch._dynamo.reset()
    _, given = torch.compile(call, backend="eager")(torch.ones(2))
    if given != {"number": 3}:
        found.append(f"{call.__name__} gives {given}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))
