"""Errors of Python that a program catches, and that leave torch.compile as an internal error, or are no errors at all."""

import enum

import torch


class Kind(enum.Enum):
    A = 1


class Right(enum.Flag):
    A = 1


ASKED = {
    "Kind(9)": lambda: Kind(9),
    "Right(16)": lambda: Right(16),
    "torch.finfo(torch.int8)": lambda: torch.finfo(torch.int8).max,
    "torch.iinfo(torch.float32)": lambda: torch.iinfo(torch.float32).max,
    "range(1, 1, 0)": lambda: range(1, 1, 0),
    'max([1, "a"])': lambda: max([1, "a"]),
    '[1].insert("a", 5)': lambda: [1].insert("a", 5),
    r'b"\xff".decode()': lambda: b"\xff".decode(),
    "{1: 2}.get([1])": lambda: {1: 2}.get([1]),
    "dict(**a, **a)": lambda: dict(**{"a": 1}, **{"a": 2}),
}
x = torch.ones(1)
wrong = []
for name, ask in ASKED.items():
    torch.compiler.reset()

    def program(x, ask=ask):
        try:
            ask()
        except Exception as error:
            return x * 2, type(error).__name__
        return x * 3, "none"

    try:
        made = torch.compile(program, backend="eager")(x)[1]
    except Exception as error:
        made = type(error).__name__
    if made != program(x)[1]:
        wrong.append(f"{name} is {made}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
