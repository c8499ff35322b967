"""pytorch#177630: neighbour: mv of float64 and float32."""

import sys

import torch


def run(fn):
    try:
        return str(fn(torch.ones(2, 4, dtype=torch.float64), torch.ones(4)).dtype)
    except RuntimeError:
        return "raises"


a, b = run(torch.mv), run(torch.compile(torch.mv))
print("mv(float64, float32): eager", a, "compiled", b)
sys.exit(a != b)
