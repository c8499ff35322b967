"""`torch.full((6,), 0.1, dtype=torch.bfloat16).cumsum(0, dtype=torch.float32)` sums up 0.1 and not what 0.1 is in bfloat16, and the running
sums of `torch.full((3, 4), 7).cumsum(0)` have stride 0: what a caller writes to one element is in the whole row."""

import torch


def summed():
    return torch.full((6,), 0.1, dtype=torch.bfloat16).cumsum(0, dtype=torch.float32)


def down():
    return torch.full((3, 4), 7).cumsum(0)


found = []
if not torch.allclose(torch.compile(summed)().float(), summed(), rtol=1e-5):
    found.append("the constant is not rounded")
made = torch.compile(down)()
made[0, 0] = 99
if made[0, 1] == 99:
    found.append(f"strides {made.stride()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
