"""Eager refuses integers in avg_pool2d, var, softmax and interpolate; the compiled call computes something. See pytorch#193811, #197554."""

import torch
from torch.nn import functional as F

image = torch.ones(1, 3, 4, 8, dtype=torch.int32)
CALLS = {
    "avg_pool2d": lambda: F.avg_pool2d(image, 2),
    "var": lambda: image.var(1),
    "softmax": lambda: torch.softmax(image, -1),
    "nearest": lambda: F.interpolate(image, size=(5, 4)),
    "bicubic": lambda: F.interpolate(image, size=(5, 4), mode="bicubic"),
}


def refuses(call) -> bool:
    try:
        call()
    except Exception:
        return True
    return False


taken = [name for name, call in CALLS.items() if refuses(call) and not refuses(torch.compile(call))]
if taken:
    raise SystemExit(f"torch {torch.__version__}: eager refuses, compiled does not: {', '.join(taken)}")
