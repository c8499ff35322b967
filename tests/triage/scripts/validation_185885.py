"""pytorch#185885: index_add with a negative index: eager raises."""

import torch


def f(x, i, s):
    return torch.index_add(x, 0, i, s)


x, i, s = torch.zeros(3, 2), torch.tensor([0, -1]), torch.ones(2, 2)
try:
    f(x, i, s)
except (RuntimeError, IndexError) as e:
    print("eager refuses:", str(e).splitlines()[0])
else:
    raise SystemExit(0) from None
try:
    out = torch.compile(f)(x, i, s)
except (RuntimeError, IndexError):
    raise SystemExit(0) from None
print("compiled accepts and returns", out.tolist())
raise SystemExit(1)
