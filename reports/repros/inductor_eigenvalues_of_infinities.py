"""eigvalsh of a matrix with infinities: eager fails to converge; compiled, vectors are computed, too, and NaN is given. The other way
round, the rank of such a matrix is a number in eager and an error in the compiled call. See pytorch#190283."""

import torch
from torch import linalg

square = torch.special.psi(torch.tensor([[0.0, 1, 2, 3], [4, 0, 5, 6], [7, 1, 0, 2], [3, 3, 4, 5]]))
other = torch.special.psi(torch.tensor([[4.0, 7, 5, 0], [3, 3, 3, 7], [1, 3, 5, 2], [4, 7, 6, 0]]))[None]


def refuses(call) -> bool:
    torch._dynamo.reset()
    try:
        call()
    except Exception:
        return True
    return False


CALLS = {"eigvalsh": lambda: linalg.eigvalsh(square), "matrix_rank": lambda: linalg.matrix_rank(other)}
found = [name for name, call in CALLS.items() if refuses(call) != refuses(torch.compile(call))]
if found:
    raise SystemExit(f"torch {torch.__version__}: one of eager and compiled fails: " + ", ".join(found))
