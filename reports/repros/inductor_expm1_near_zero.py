"""expm1 near zero is computed as exp(x) - 1 by a vector kernel: no digit of 1e-8 is right. A neighbour of pytorch#198183 (erf, atanh)."""

import torch

x = torch.full((64,), 1e-8)
eager, compiled = torch.expm1(x), torch.compile(torch.expm1)(x)
if not torch.allclose(eager, compiled, rtol=1e-3, atol=0.0):
    raise SystemExit(f"torch {torch.__version__}: eager {eager[0].item()}, compiled {compiled[0].item()}")
