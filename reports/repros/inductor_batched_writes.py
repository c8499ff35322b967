"""With `pre_grad_fusion_options`, ops are batched across a write: batch_tanh and batch_linear_lhs read the second input before it is written,
and batch_relu forgets `inplace=True`. Wrong values and no error."""

import torch
from torch.nn import functional as F


def tanhs(x, y):
    first = torch.tanh(x)
    y.add_(1)
    return first * 2, torch.tanh(y) * 2


def linears(x, y):
    first = F.linear(x, y) * 2
    x.add_(1)
    return first, F.linear(x, y[:3]) * 2


def relus(x, y):
    first, second = F.relu(x, inplace=True), F.relu(y, inplace=True)
    return first * 2, second * 2, x + y


found = []
for name, call in (("batch_tanh", tanhs), ("batch_linear_lhs", linears), ("batch_relu", relus)):
    torch._dynamo.reset()
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    compiled = torch.compile(call, options={"pre_grad_fusion_options": {name: {"min_fuse_set_size": 2}}})
    given = compiled(x.clone(), y.clone())
    if not all(torch.allclose(a, b, atol=1e-4) for a, b in zip(given, call(x.clone(), y.clone()), strict=True)):
        found.append(name)
if found:
    raise SystemExit(f"torch {torch.__version__}: wrong values with " + ", ".join(found))
