"""take, lost validation: an `out=` that is the index itself is refused by eager, and written by the compiled program.

Found by `conformance ops` (form errors).
Exits 1 while the defect is there, 0 once it is gone.
"""

import sys

import torch

x, index = torch.tensor([1, 2, 3]), torch.tensor([0, 1])
try:
    torch.compile(lambda x, index: torch.take(x, index, out=index))(x, index)
except RuntimeError:
    sys.exit(0)
print(f"torch {torch.__version__}: not refused")
sys.exit(1)
