"""Sums and products in a dtype that is asked for: other numbers in bytes, no compile as bool (pytorch#197106)."""

import torch

values = torch.arange(-50.0, 50.0)
small = torch.arange(-50, 50).clamp(1, 3)
CALLS = {
    "sum of floats as int8": lambda: values.sum(dtype=torch.int8),
    "sum of fractions as int8": lambda: (values * 0.5).sum(dtype=torch.int8),
    "product of int8": lambda: small.to(torch.int8).prod(dtype=torch.int8),
    "product of uint8": lambda: small.to(torch.uint8).prod(dtype=torch.uint8),
    "sum as bool": lambda: small.sum(dtype=torch.bool),
    "product as bool": lambda: small.prod(dtype=torch.bool),
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    try:
        got = torch.compile(call)().item()
    except Exception as error:
        got = type(error).__name__
    if got != (want := call().item()):
        found.append(f"{name}: {got}, eager {want}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
