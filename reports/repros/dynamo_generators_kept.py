"""A random.Random that the caller keeps: later calls repeat a number (2.11); bounds that change from call to call are refused."""

import random

import torch

x = torch.zeros(2)


def drawn(x, generator, bound):
    return x + generator.randint(1, 100)


def bounded(x, generator, bound):
    return x + generator.randint(bound, bound)


wrong = []
for program in (drawn, bounded):
    torch.compiler.reset()
    compiled, first, second = torch.compile(program), random.Random(7), random.Random(7)
    try:
        if any(not torch.equal(compiled(x, first, n), program(x, second, n)) for n in (5, 7, 8, 9)):
            wrong.append(f"{program.__name__}: another number")
    except Exception as error:
        wrong.append(f"{program.__name__}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
