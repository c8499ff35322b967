"""Reductions of bytes with vectors: argmin gives a place that there is not, min along rows gives no element of the row, and a sum in int8
loses carries (int8 and uint8; aarch64)."""

import torch

x = (torch.arange(420).reshape(21, 20) * 7 % 11 + 2).to(torch.int8)
x[13, 9] = 1
PROGRAMS = {
    "argmin": lambda x: (x + 3).argmin(),
    "argmin of rows": lambda x: (x + 3).argmin(1),
    "min of rows": lambda x: (x + 3).min(1).values,
    "sum as int8": lambda x: (x + 3).sum(1, dtype=torch.int8),
}
wrong = []
for dtype in (torch.int8, torch.uint8):
    for name, program in PROGRAMS.items():
        torch.compiler.reset()
        eager, compiled = program(x.to(dtype)), torch.compile(program)(x.to(dtype))
        if not torch.equal(eager, compiled):
            wrong.append(f"{name} of {dtype}: {compiled.flatten()[0].item()}, eager gives {eager.flatten()[0].item()}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
