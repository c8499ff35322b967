"""addmv with alpha=0 ignores the product, NaN included; the compiled call gives NaN. A neighbour of pytorch#196596 (addmm)."""

import torch


def scaled(bias, matrix, vector):
    return torch.addmv(bias, matrix, vector, alpha=0)


tensors = torch.ones(3), torch.full((3, 4), float("nan")), torch.ones(4)
eager, compiled = scaled(*tensors), torch.compile(scaled)(*tensors)
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager {eager.tolist()}, compiled {compiled.tolist()}")
