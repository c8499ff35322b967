"""_foreach_mul_ of two tensors with each other's shifted rows: the second is computed from what the first has become."""

import torch


def f(x, y):
    torch._foreach_mul_([x, y], [y.roll(1, 0), x.roll(1, 1)])


values = [torch.arange(54.0).view(6, 9).sin(), torch.arange(54.0).view(6, 9).cos()]
want, got = [x.clone() for x in values], [x.clone() for x in values]
f(*want)
torch.compile(f)(*got)
wrong = [index for index, (a, b) in enumerate(zip(want, got, strict=True)) if not torch.allclose(a, b)]
raise SystemExit(f"tensors {wrong} differ" if wrong else 0)
