"""Rows in the jagged layout that the program makes: layer_norm does not capture (pytorch#183369), where with a number does not
compile (pytorch#146644)."""

import torch
from torch.nn import functional as F

programs = {
    "layer_norm": lambda rows: F.layer_norm(rows, (4,)).values(),
    "where": lambda rows: torch.where(rows > 0.0, torch.ones_like(rows), 0).values(),
}
wrong = []
for name, program in programs.items():
    torch._dynamo.reset()

    def made(x, offsets, program=program):
        return program(torch.nested.nested_tensor_from_jagged(x, offsets))

    x, offsets = torch.rand(5, 4, requires_grad=True), torch.tensor([0, 2, 5])
    made(x, offsets)
    try:
        torch.compile(made)(x, offsets)
    except Exception as error:
        wrong.append(f"{name}: {str(error).splitlines()[0]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
