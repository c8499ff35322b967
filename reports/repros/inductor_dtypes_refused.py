"""Eager refuses these dtypes and shapes; the compiled call computes something. See pytorch#197062, #151478, #195674."""

import torch
from torch.nn import functional as F

whole = torch.ones(2, 4, 4, 4, dtype=torch.int64)
row, image, narrow = whole[0, 0, 0], torch.ones(2, 4, 4, 4), torch.ones(4, dtype=torch.bfloat16)
CALLS = {
    **{
        name: (lambda call=getattr(F, name): call(row))
        for name in ("softplus", "hardswish", "mish", "logsigmoid", "hardshrink")
    },
    "log_softmax": lambda: F.log_softmax(row, 0),
    "logaddexp": lambda: torch.logaddexp(row, row),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(row, row),
    "unfold": lambda: F.unfold(whole, 2),
    "nll_loss of int32": lambda: F.nll_loss(torch.randn(3, 4), torch.zeros(3, dtype=torch.int32)),
    "heaviside": lambda: torch.heaviside(torch.ones(3), torch.ones(3, dtype=torch.float64)),
    "grid_sample": lambda: F.grid_sample(image, torch.zeros(2, 4, 4, 2, dtype=torch.float64), align_corners=False),
    "group_norm": lambda: F.group_norm(image, 2, narrow, narrow),
    "batch_norm": lambda: F.batch_norm(image, torch.zeros(4), torch.ones(4), narrow, narrow, training=False),
    "one_hot of floats": lambda: F.one_hot(torch.ones(3), 4),
    "one_hot of int32": lambda: F.one_hot(torch.ones(3, dtype=torch.int32), 4),
    "relu_ of expanded": lambda: torch.ones(1).expand(3).relu_(),
    "instance_norm of nothing": lambda: F.batch_norm(torch.ones(0, 4, 2), None, None, training=True),
    "mask *= 2": lambda: torch.ones(3, dtype=torch.bool).mul_(2),
    "mask.cumsum_": lambda: torch.ones(3, dtype=torch.bool).cumsum_(0),
}


def refuses(call) -> bool:
    torch._dynamo.reset()
    try:
        call()
    except Exception:
        return True
    return False


taken = [name for name, call in CALLS.items() if refuses(call) and not refuses(torch.compile(call))]
if taken:
    raise SystemExit(f"torch {torch.__version__}: eager refuses, compiled does not: {', '.join(taken)}")
