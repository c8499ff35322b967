"""`jacrev` of `trace(m) * eye + diag(diagonal(m))`, compiled: other values than eager's. torch 2.11; a neighbour of pytorch#190856."""

import torch


def program(m):
    return torch.trace(m) * torch.eye(2) + torch.diag(torch.diagonal(m))


m = torch.randn(2, 2)
derivative = torch.func.jacrev(program)
eager, compiled = derivative(m), torch.compile(derivative)(m)
if not torch.allclose(eager, compiled):
    raise SystemExit(
        f"torch {torch.__version__}: eager {eager.flatten().tolist()}, compiled {compiled.flatten().tolist()}"
    )
