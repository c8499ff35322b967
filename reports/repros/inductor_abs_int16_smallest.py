"""abs of the smallest int16 wraps in eager; the compiled kernel takes it as an int: 32768. A neighbour of pytorch#187018 (uint8)."""

import torch


def absolute(x):
    return x.abs().float()


x = torch.full((35,), -32768, dtype=torch.int16)
eager, compiled = absolute(x), torch.compile(absolute)(x)
if not torch.equal(eager, compiled):
    raise SystemExit(
        f"torch {torch.__version__}: eager {eager.unique().tolist()}, compiled {compiled.unique().tolist()}"
    )
