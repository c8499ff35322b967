"""Sizes that are declared with other bounds at each call: with warm caches the program is refused, by the bounds of another entry."""

import torch


def program(x):
    return x * 2 + 1


def ask():
    compiled = torch.compile(program)
    for length, least, most in ((5, 2, 8), (9, 4, 12), (16, 8, 32)):
        x = torch.ones(length, 3)
        torch._dynamo.mark_dynamic(x, 0, min=least, max=most)
        compiled(x)


ask()
torch.compiler.reset()
try:
    ask()
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: refused the second time: {type(error).__name__}") from None
