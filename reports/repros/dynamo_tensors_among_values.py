"""Tensors of one element among Python's values: `in`, list.count and min give tensors, where Python gives a bool, an int and one of the
values. A count that Python refuses is a tensor, too."""

import torch


def refused(x):
    try:
        return [1, x, 1].count(1)
    except RuntimeError:
        return "refused"


PROGRAMS = {
    "in": lambda x: x.sum() in [1, 15],
    "count": lambda x: [1, 2].count(x.sum()),
    "min": lambda x: min([x.sum(), 1.0]),
    "refused count": refused,
}
x, wrong = torch.arange(6.0).reshape(2, 3), []
for name, program in PROGRAMS.items():
    torch.compiler.reset()
    eager = program(x)
    try:
        compiled = torch.compile(program, backend="eager")(x)
    except Exception as error:
        compiled = type(error).__name__
    if type(compiled) is not type(eager):
        wrong.append(f"{name}: {compiled!r}, eager gives {eager!r}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
