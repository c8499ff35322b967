"""With `pre_grad_fusion_options` that batch relu, tanh, clamp, nan_to_num or linear, two tensors of different dtypes are stacked: one result
has the other's dtype. No error. So do `post_grad_fusion_options` that batch relu or tanh."""

import torch
from torch.nn import functional as F


def both(op):
    return lambda x, y: (op(x) * 2, op(y) * 2)


def linear(x, y):
    return F.linear(x, x) * 2, F.linear(y, y) * 2


x = torch.randn(4, 4)
cases = {
    "batch_relu": ("pre", both(F.relu), x.double()),
    "batch_tanh": ("pre", both(torch.tanh), x.bfloat16()),
    "batch_clamp": ("pre", both(lambda t: torch.clamp(t, min=0)), x.long()),
    "batch_nan_to_num": ("pre", both(torch.nan_to_num), x.half()),
    "batch_linear": ("pre", linear, x.double()),
    "batch_aten_relu": ("post", both(F.relu), x.double()),
    "batch_aten_tanh": ("post", both(torch.tanh), x.bfloat16()),
}
found = []
for name, (when, call, y) in cases.items():
    torch._dynamo.reset()
    options = {f"{when}_grad_fusion_options": {name: {"min_fuse_set_size": 2}}}
    dtypes = [result.dtype for result in torch.compile(call, options=options)(x, y)]
    if dtypes != [result.dtype for result in call(x, y)]:
        found.append(f"{name} {dtypes}")
if found:
    raise SystemExit(f"torch {torch.__version__}: other dtypes than eager: " + "; ".join(found))
