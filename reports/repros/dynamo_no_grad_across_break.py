"""`c = torch.no_grad()`, a graph break, `with c: ...`: gradients stay off after the block, in the rest of the program and in the caller."""

import torch


@torch.compiler.disable
def cut():
    pass


def program(x):
    without = torch.no_grad()
    cut()
    with without:
        inner = x * 2
    return inner, x * 3


result = torch.compile(program, backend="eager")(torch.ones(2, requires_grad=True))[1]
left_on = torch.is_grad_enabled()
torch.set_grad_enabled(True)
if not left_on or not result.requires_grad:
    raise SystemExit(
        f"torch {torch.__version__}: gradients are on after the call: {left_on}; the result has one: {result.requires_grad}"
    )
