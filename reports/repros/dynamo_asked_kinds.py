"""isinstance of a protocol, a metaclass that looks at the object, or a class that was registered: the first answer is kept. And a metaclass is not
asked about tensors (2.11)."""

import abc
from typing import Protocol, runtime_checkable

import torch

x = torch.arange(3.0)


@runtime_checkable
class HasScale(Protocol):
    scale: int


class ByValue(type):
    def __instancecheck__(cls, held):
        return getattr(held, "number", 0) > 2


class Large(metaclass=ByValue):
    pass


class Always(type):
    def __instancecheck__(cls, held):
        return True


class Anything(metaclass=Always):
    pass


class Held:
    pass


def asks(kind):
    return lambda x, held: x + 1 if isinstance(held, kind) else x - 1


wrong = []
for name, kind, change in (
    ("a protocol", HasScale, lambda held: setattr(held, "scale", 3)),
    ("a metaclass", Large, lambda held: setattr(held, "number", 5)),
    ("a registered class", abc.ABCMeta("Abstract", (), {}), None),
):
    torch.compiler.reset()
    program, held = asks(kind), Held()
    compiled = torch.compile(program)
    compiled(x, held)
    change(held) if change else kind.register(Held)
    if not torch.equal(compiled(x, held), program(x, held)):
        wrong.append(f"the answer of {name} is kept")
if not torch.compile(lambda x: (x + 1, isinstance(x, (str, Anything))))(x)[1]:
    wrong.append("a metaclass is not asked about a tensor")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
