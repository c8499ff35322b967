"""A list and a tuple are compared and joined as if they were of one kind: `[1] == (1,)` is True, `(1,) + [2]` is taken."""

import torch


def joined(numbers):
    try:
        return tuple(numbers) + list(numbers)
    except TypeError as error:
        return type(error).__name__


PROGRAMS = {"==": lambda numbers: list(numbers) == tuple(numbers), "+": joined}
x, wrong = torch.ones(3), []
for name, asked in PROGRAMS.items():
    torch.compiler.reset()

    def program(x, asked=asked):
        return x + 1, asked([1])

    expected, seen = program(x)[1], torch.compile(program, backend="eager")(x)[1]
    if seen != expected:
        wrong.append(f"{name}: {seen}, eager {expected}")
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))
