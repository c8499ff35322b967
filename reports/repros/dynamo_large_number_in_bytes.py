"""`300 in b"abc"` is a ValueError in Python; Dynamo fails with an internal error that the program cannot catch."""

import torch


def program(x):
    try:
        return x + (2 if 300 in b"abc" else 3)
    except ValueError:
        return x


x = torch.arange(3.0)
try:
    made = torch.compile(program)(x)
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {type(error).__name__}: {str(error)[:80]}") from None
if not torch.equal(made, program(x)):
    raise SystemExit(f"torch {torch.__version__}: {made}")
