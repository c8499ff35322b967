"""What Dynamo of 2.15 traces into one graph, and that of 2.11 does not, or gives another answer: calls of torch's state, enums, copies, records."""

import contextlib
import copy
import dataclasses
import enum
import functools
import types
from typing import NamedTuple

import torch


class Kind(enum.Enum):
    A = 1
    B = 2


class Right(enum.Flag):
    A = 1
    B = 2


class Pair(NamedTuple):
    a: int
    b: int


@dataclasses.dataclass
class Record:
    a: int = 1
    b: list = dataclasses.field(default_factory=lambda: [1, 2])


class Box:
    def __init__(self):
        self.size = 2


class Closed:
    done = False

    def close(self):
        self.done = True


@torch.compiler.assume_constant_result
def size_of(box):
    return box.size


def autocast():
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache()


def starred():
    first, *rest = (1, 2, 3)
    return type(rest).__name__


def closing():
    with contextlib.closing(Closed()) as held:
        pass
    return held.done


BOX = Box()
ASKED = {
    "autocast": autocast,
    "list of an enum": lambda: [kind.value for kind in list(Kind)],
    "reversed enum": lambda: [kind.value for kind in reversed(Kind)],
    "flags": lambda: (Right.A | Right.B).value,
    "deepcopy": lambda: copy.deepcopy([[1], [2]]),
    "asdict": lambda: dataclasses.asdict(Record()),
    "named tuple is a tuple": lambda: Pair(1, 2) == (1, 2),
    "replaced": lambda: Pair(1, 2)._replace(b=3).b,
    "sorted by comparison": lambda: sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)),
    "SimpleNamespace": lambda: types.SimpleNamespace(a=1).a,
    "starred": starred,
    "closing": closing,
    "constant of an object": lambda: size_of(BOX),
}
x = torch.ones(2)
wrong = []
for name, ask in ASKED.items():
    torch.compiler.reset()
    try:
        made = torch.compile(lambda x, ask=ask: (x + 1, ask()), backend="eager", fullgraph=True)(x)[1]
    except Exception as error:
        made = type(error).__name__
    if made != ask():
        wrong.append(f"{name}: {made}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
