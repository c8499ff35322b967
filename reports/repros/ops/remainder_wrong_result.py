"""remainder, wrong result: torch.remainder(1.0, inf) is 1.0 in eager and NaN in the compiled program (float32, vectors).

Found by `conformance ops` (form special).
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/198057

import sys

import torch

x, y = torch.ones(32), torch.full((32,), float("inf"))
eager, compiled = torch.remainder(x, y), torch.compile(torch.remainder)(x, y)
print(f"torch {torch.__version__}: eager {eager[0].item()}, compiled {compiled[0].item()}")
sys.exit(0 if torch.equal(eager, compiled) else 1)
