"""A Python number beside a bfloat16 or float16 tensor: eager rounds it to the tensor's dtype, Inductor does not. `x == 0.7` is false for
the 0.7 that x holds; remainders jump by a whole divisor; gradients at a bound are lost. See pytorch#173987, #128306, #183083, #186875."""

import torch
from torch.nn import functional as F

NUMBERS = (0.7, -0.7, 0.1, 1 / 3, -0.3, 3.14, 0.2, 1.7)
CALLS = {
    "==": lambda x: (x == 0.7, x == 1 / 3),
    ">": lambda x: (x > 0.2, x >= 0.7, x < 0.1),
    "where": lambda x: torch.where(x >= 0.7, x, 0.1),
    "isclose": lambda x: torch.isclose(x, torch.full_like(x, 0.7)),
    "remainder": lambda x: (torch.remainder(x, 1.7), torch.remainder(x, 0.7)),
    "fmod": lambda x: torch.fmod(x, 0.1),
    "sign of a difference": lambda x: torch.sign(x - 0.7),
    "maximum": lambda x: torch.maximum(x, torch.tensor(0.7)),
    "clamp": lambda x: x.clamp(-0.7, 0.7),
    "hardtanh": lambda x: F.hardtanh(x, -0.7, 0.7),
    "threshold": lambda x: F.threshold(x, 0.7, 0.0),
    "hardshrink": lambda x: F.hardshrink(x, 0.7),
    "softshrink": lambda x: F.softshrink(x, 0.7),
    "logit": lambda x: torch.logit(x, 0.3),
}


def results(call, dtype):
    x = torch.tensor(NUMBERS, dtype=dtype, requires_grad=True)
    given = call(x)
    given = list(given) if isinstance(given, tuple) else [given]
    if given[0].requires_grad:
        given[0].sum().backward()
        given.append(x.grad)
    return [tensor.detach() for tensor in given]


found = []
for name, call in CALLS.items():
    for dtype in (torch.bfloat16, torch.float16):
        torch._dynamo.reset()
        pairs = zip(results(call, dtype), results(torch.compile(call), dtype), strict=True)
        if not all(torch.allclose(want.double(), got.double(), rtol=0.02, atol=0.001) for want, got in pairs):
            found.append(f"{name} ({str(dtype).removeprefix('torch.')})")
if found:
    raise SystemExit(f"torch {torch.__version__}: other than eager: " + ", ".join(found))
