"""A member of an IntEnum by its value, `Axis(1)`, inside a compiled program: Dynamo recurses until Python refuses."""

import enum

import torch


class Axis(enum.IntEnum):
    ROW = 0
    COLUMN = 1


def program(x):
    return x + 1, Axis.COLUMN is Axis(1), [4, 5][Axis.COLUMN]


try:
    answers = torch.compile(program, backend="eager")(torch.ones(2))[1:]
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error).splitlines()[0]}") from None
if answers != (True, 5):
    raise SystemExit(f"torch {torch.__version__}: {answers!r}, eager gives (True, 5)")
