"""asinh(3e38) is infinite when compiled, 89.29 in eager. Exits 1 while it is."""

import sys

import torch

x = torch.tensor([3e38, -3e38])
eager, compiled = torch.asinh(x), torch.compile(torch.asinh)(x)
print(f"eager {eager.tolist()}, compiled {compiled.tolist()}")
sys.exit(0 if torch.allclose(eager, compiled) else 1)
