"""pytorch#189799: the sign of zero is lost by an addition of zeros."""

import torch


def f(x):
    y = torch.ceil(x) + torch.zeros_like(x)
    return torch.reciprocal(y)


x = torch.tensor([-0.5, 0.5, -1.5, 2.0])
for line in range(3000):
    print(line, "a line that says nothing about the failure", x.tolist())
want, got = f(x), torch.compile(f)(x)
print("eager   ", want.tolist())
print("compiled", got.tolist())
raise SystemExit(0 if torch.equal(want, got) else 1)
