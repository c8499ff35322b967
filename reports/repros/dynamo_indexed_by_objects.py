"""An object that is a number by __index__, as a bound or a step of a slice: a TypeError, where eager takes it."""

import torch

x = torch.arange(12.0).view(4, 3)


class Number:
    def __index__(self):
        return 2


def written(x, n):
    y = x + 1
    y[:n] = 9.0
    return y


PROGRAMS = {
    "x[:n]": lambda x, n: x[:n] + 1,
    "x[..., n:]": lambda x, n: x[..., n:] + 1,
    "x[::n]": lambda x, n: x[::n] + 1,
    "y[:n] = 9": written,
    "list(range(n))": lambda x, n: x + len(list(range(n))),
    "(1, 2, 3)[:n]": lambda x, n: x + len((1, 2, 3)[:n]),
}
wrong = []
for name, program in PROGRAMS.items():
    torch.compiler.reset()
    try:
        if not torch.equal(torch.compile(program)(x, Number()), program(x, Number())):
            wrong.append(f"{name}: another result")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
