"""take, another alias: torch.take of a tensor of one element at an index without dims is a copy in eager, and the input itself in the
compiled program (fullgraph=True), so that a write to the result changes the input.

Found by `conformance ops` (form plain).
Exits 1 while the defect is there, 0 once it is gone.
"""

import sys

import torch

x, index = torch.ones(1), torch.tensor(0)
torch.compile(lambda x, index: torch.take(x, index), fullgraph=True)(x, index).add_(1)
print(f"torch {torch.__version__}: the input is {x.item()} after a write to the result")
sys.exit(0 if x.item() == 1 else 1)
