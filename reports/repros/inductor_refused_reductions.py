"""Reductions that eager refuses: the compiled program computes std and var of whole numbers, and argmax of bools; any of uint8 gives a
bool, where eager gives a uint8."""

import torch

x = torch.arange(60).reshape(6, 10) * 7 % 11
PROGRAMS = {
    "var of int16": (lambda x: (x + 3).var(1), torch.int16),
    "argmax of bool": (lambda x: (x ^ x.flip(0)).argmax(), torch.bool),
    "argmin of bool": (lambda x: x.argmin(1), torch.bool),
    "any of uint8": (lambda x: (x + 3).any(), torch.uint8),
}


def told(program, x):
    try:
        return program(x).dtype
    except Exception as error:
        return "refused" if not isinstance(error, AssertionError) else str(error)


wrong = []
for name, (program, dtype) in PROGRAMS.items():
    torch.compiler.reset()
    eager, compiled = told(program, x.to(dtype)), told(torch.compile(program), x.to(dtype))
    if eager != compiled:
        wrong.append(f"{name}: {compiled}, eager: {eager}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
