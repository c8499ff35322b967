"""A detached alias grows in place: the tensor that it was taken from grows too, when compiled. A neighbour of pytorch#191449 (a view)."""

import torch


def grown(x):
    base = x * 2
    alias = base.detach()
    alias.resize_(6)
    return base + 1


x = torch.ones(3)
eager, compiled = grown(x), torch.compile(grown)(x)
if eager.shape != compiled.shape:
    raise SystemExit(f"torch {torch.__version__}: eager {tuple(eager.shape)}, compiled {tuple(compiled.shape)}")
