"""atanh of small numbers in float64: the compiled one is off by more than its last bits. A neighbour of pytorch#198183 (float32)."""

import torch

x = torch.linspace(1e-10, 9e-10, 35, dtype=torch.float64)
eager, compiled = torch.atanh(x), torch.compile(torch.atanh)(x)
error = ((compiled - eager).abs() / eager).max().item()
if error > 1e-12:
    raise SystemExit(f"torch {torch.__version__}: relative error {error:.1e}")
