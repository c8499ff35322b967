"""pytorch#198071: clamp bounds beyond int8 wrap around."""

import sys

import torch


def f(x):
    return torch.clamp(x, -1000, 300)


x = torch.tensor([-128, -3, 0, 100, 127], dtype=torch.int8)
try:
    want = f(x).tolist()
except RuntimeError:
    want = "RuntimeError"  # eager refused such bounds up to 2.14
try:
    got = torch.compile(f)(x).tolist()
except Exception:
    got = "RuntimeError"
print("eager", want, "compiled", got)
sys.exit(want != got)
