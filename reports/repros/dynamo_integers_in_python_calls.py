"""Integers that change from call to call, in calls of Python: padding a text with one, or asking a range for one, is an internal error."""

import torch

PROGRAMS = {
    "center": lambda n: "ab".center(n),
    "ljust": lambda n: "ab".ljust(n),
    "zfill": lambda n: "ab".zfill(n),
    "in range": lambda n: n in range(5),
    "count": lambda n: range(5).count(n),
}
x, wrong = torch.ones(3), []
for name, asked in PROGRAMS.items():
    torch.compiler.reset()

    def program(x, n, asked=asked):
        return x * n, asked(n)

    compiled = torch.compile(program, backend="eager", dynamic=True)
    for n in (3, 4, 7):
        expected = program(x, n)[1]
        try:
            seen = compiled(x, n)[1]
        except Exception as error:
            seen = type(error).__name__
        if seen != expected:
            wrong.append(f"{name} of {n}: {seen!r}, eager {expected!r}")
            break
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))
