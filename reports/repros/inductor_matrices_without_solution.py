"""Eager says that a matrix has no inverse, no root or no solution; the compiled call gives numbers. See pytorch#182965, #147280."""

import torch
from torch import linalg

singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
CALLS = {
    "inv": lambda: linalg.inv(singular),
    "inv of float64": lambda: linalg.inv(singular.double()),
    "solve": lambda: linalg.solve(singular, torch.ones(2)),
    "matrix_power": lambda: linalg.matrix_power(singular, -1),
    "tensorinv": lambda: linalg.tensorinv(torch.zeros(1), ind=1),
    "tensorsolve": lambda: linalg.tensorsolve(singular, torch.ones(2)),
    "cholesky": lambda: linalg.cholesky(indefinite),
    "lu_factor": lambda: linalg.lu_factor(torch.zeros(2, 2)),
}


def refuses(call) -> bool:
    torch._dynamo.reset()
    try:
        call()
    except Exception:
        return True
    return False


taken = [name for name, call in CALLS.items() if refuses(call) and not refuses(torch.compile(call))]
if taken:
    raise SystemExit(f"torch {torch.__version__}: eager refuses, the compiled call does not: " + ", ".join(taken))
