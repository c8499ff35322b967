"""pytorch#186875: remainder(bfloat16, 1.7): the scalar is not rounded as eager does."""

import sys

import torch


def f(x):
    return torch.remainder(x, 1.7)


x = torch.tensor([1.703125, 3.40625, 5.09375, 0.5], dtype=torch.bfloat16)
x = torch.arange(0, 64, dtype=torch.bfloat16) * torch.tensor(1.7, dtype=torch.bfloat16)
a, b = f(x), torch.compile(f)(x)
diff = (a.float() - b.float()).abs().max().item()
print("largest difference", diff)
sys.exit(diff > 0.5)
