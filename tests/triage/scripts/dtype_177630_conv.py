"""pytorch#177630: neighbour: conv1d of half input and float32 weights."""

import sys

import torch

conv = torch.nn.Conv1d(2, 3, 3)
x = torch.ones(1, 2, 8, dtype=torch.float16)


def run(fn):
    try:
        with torch.no_grad():
            return str(fn(x).dtype)
    except RuntimeError:
        return "raises"


a, b = run(conv), run(torch.compile(conv))
print("half input, float32 weights: eager", a, "compiled", b)
sys.exit(a != b)
