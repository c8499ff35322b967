"""fmax, fmin, xlogy and lerp of a transposed tensor and a dense one have the strides of the second, where eager gives those of the first.

Exits 1 while one of them does."""

import sys

import torch

FUNCTIONS = {"fmax": torch.fmax, "fmin": torch.fmin, "xlogy": torch.xlogy, "lerp": lambda x, y: torch.lerp(x, y, y)}
other = []
for name, function in FUNCTIONS.items():
    torch._dynamo.reset()
    inputs = torch.rand(6, 4).t() + 0.5, torch.rand(4, 6) + 0.5
    eager = function(*inputs).stride()
    compiled = torch.compile(lambda x, y, function=function: function(x, y))(*inputs).stride()
    print(f"{name}: eager {eager}, compiled {compiled}")
    other += [name] if eager != compiled else []
sys.exit(1 if other else 0)
