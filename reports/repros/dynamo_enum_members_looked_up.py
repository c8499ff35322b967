"""A member of an enum is looked up in a set, a dict, a list or a tuple: the next call brings another member, and gets the answer of the first."""

import enum

import torch


class Kind(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


LOOKED_UP = {
    "in a set": lambda kind: kind in {Kind.RED, Kind.GREEN},
    "in a frozenset": lambda kind: kind in frozenset((Kind.RED, Kind.GREEN)),
    "in a dict": lambda kind: kind in {Kind.RED: 1, Kind.GREEN: 2},
    "get of a dict": lambda kind: {Kind.RED: 1}.get(kind, 0),
    "index of a list": lambda kind: [Kind.RED, Kind.GREEN, Kind.BLUE].index(kind),
    "count of a tuple": lambda kind: (Kind.RED, Kind.GREEN).count(kind),
}
x = torch.arange(3.0)
wrong = []
for name, look in LOOKED_UP.items():
    torch.compiler.reset()

    def program(x, kind, look=look):
        return x + (look(kind) + 2)

    compiled = torch.compile(program)
    compiled(x, Kind.RED)
    if not torch.equal(compiled(x, Kind.BLUE), program(x, Kind.BLUE)):
        wrong.append(name)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: the answer of the first member is kept: {', '.join(wrong)}")
