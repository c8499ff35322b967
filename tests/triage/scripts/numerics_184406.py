"""pytorch#184406: floor_divide of the smallest int32 by -1 kills the process."""

import torch


def f(x, y):
    return torch.floor_divide(x, y)


x, y = torch.tensor([-(2**31), 7], dtype=torch.int32), torch.tensor([-1, 2], dtype=torch.int32)
want = f(x, y)
print("eager:", want.tolist(), flush=True)
got = torch.compile(f)(x, y)
print("compiled:", got.tolist())
raise SystemExit(not torch.equal(want, got))
