"""Answers of Python itself that differ inside a compiled function: min of lists is a copy, `in` of tensors, a number's own method."""

import torch


def smallest(x):
    lists = [[1], [2]]
    min(lists).append(5)
    return lists


def among(x):
    try:
        return bool(x in (x + 1, 5))
    except RuntimeError as error:
        return type(error).__name__


def own_method(x):
    return (5).__add__(1.5)


x, wrong = torch.ones(3), []
for asked in (smallest, among, own_method):
    torch.compiler.reset()

    def program(x, asked=asked):
        return x + 1, asked(x)

    expected = program(x)[1]
    try:
        seen = torch.compile(program, backend="eager")(x)[1]
    except Exception as error:
        seen = type(error).__name__
    if seen != expected:
        wrong.append(f"{asked.__name__}: {seen}, eager {expected}")
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))
