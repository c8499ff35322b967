"""Compiled for two inputs that overlap, then called with two that do not: the call fails. A neighbour of pytorch#139789 (the other order)."""

import os

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # a kept program of the other order would be taken

import torch  # noqa: E402


def scaled(x, y):
    x.mul_(2)
    return x + y


compiled = torch.compile(scaled)
whole = torch.ones(8)
compiled(whole[:4], whole[2:6])
try:
    result = compiled(torch.ones(4), torch.ones(4))
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: eager gives 3.0, compiled {type(error).__name__}") from None
if not torch.equal(result, torch.full((4,), 3.0)):
    raise SystemExit(f"torch {torch.__version__}: eager gives 3.0, compiled {result.tolist()}")
