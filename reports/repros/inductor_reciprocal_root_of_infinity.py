"""x ** -0.5 at minus infinity and minus zero: eager gives NaN and minus infinity, Inductor 0 and infinity."""

import torch


def program(x):
    return x**-0.5


x = torch.tensor([4.0, float("-inf"), -0.0] * 12)
got, want = torch.compile(program)(x), program(x)
if not torch.equal(got.nan_to_num(7.0), want.nan_to_num(7.0)):
    raise SystemExit(f"torch {torch.__version__}: {got[:3].tolist()}, eager gives {want[:3].tolist()}")
