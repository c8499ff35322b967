"""pytorch#198071: neighbour: clamp_min and clamp_max of uint8 with bounds out of range."""

import sys

import torch


class Clip(torch.nn.Module):
    def forward(self, x):
        return x.clamp_min(-1), x.clamp_max(300)


def outcome(fn, x):
    try:
        return [t.tolist() for t in fn(x)]
    except Exception:
        return "raises"


m, x = Clip(), torch.tensor([0, 7, 255], dtype=torch.uint8)
a, b = outcome(m, x), outcome(torch.compile(m), x)
print(a, b)
sys.exit(a != b)
