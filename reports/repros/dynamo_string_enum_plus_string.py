"""A member of a StrEnum plus a string: the compiled program returns NotImplemented. So does a member times a number."""

import enum

import torch


class Mode(enum.StrEnum):
    SUM = "sum"


def program(x):
    return x + 1, Mode.SUM + "_of", Mode.SUM * 2


try:
    texts = torch.compile(program, backend="eager")(torch.ones(2))[1:]
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error).splitlines()[0]}") from None
if texts != ("sum_of", "sumsum"):
    raise SystemExit(f"torch {torch.__version__}: {texts!r}")
