"""A checkpointed function begins with something of which nothing is left (times one, plus zero): AOTAutograd's partitioner fails."""

import torch
from torch.utils.checkpoint import checkpoint

PROGRAMS = {
    "(v * 1).sin()": lambda v, w: (v * 1).sin(),
    "v + 0": lambda v, w: v + 0,
    "(v * 1).sin() * w": lambda v, w: (v * 1).sin() * w,
}
wrong = []
for name, program in PROGRAMS.items():
    torch.compiler.reset()
    x, y = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
    expected = torch.autograd.grad(program(x, y).sum(), x)[0]
    try:
        made = torch.compile(lambda x, y, program=program: checkpoint(program, x, y, use_reentrant=False))(x, y)
        if not torch.allclose(torch.autograd.grad(made.sum(), x)[0], expected):
            wrong.append(f"{name}: another gradient")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")
