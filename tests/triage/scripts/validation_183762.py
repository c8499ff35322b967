"""pytorch#183762: celu_ with alpha 0: eager raises."""

import torch


def f(x):
    return torch.celu_(x, 0.0)


try:
    f(torch.tensor([-1.0]))
except RuntimeError:
    pass
else:
    raise SystemExit("eager accepts alpha=0")
try:
    out = torch.compile(f)(torch.tensor([-1.0]))
except Exception as e:
    print("compiled refuses too:", type(e).__name__)
else:
    raise SystemExit(f"compiled returns {out}")
