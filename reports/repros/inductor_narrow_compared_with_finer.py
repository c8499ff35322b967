"""bfloat16 compared with a number between two of its own: eager rounds the number first, the compiled program does not. No error."""

import torch


def program(x):
    return x == 0.2501, x < 0.2501, x >= 2.999


x = torch.tensor([3.0, 0.25], dtype=torch.bfloat16)
eager, compiled = [[each.tolist() for each in run(x)] for run in (program, torch.compile(program))]
if eager != compiled:
    raise SystemExit(f"torch {torch.__version__}: eager {eager}, compiled {compiled}")
