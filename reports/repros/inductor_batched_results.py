"""With `pre_grad_fusion_options`, results of batched ops are parts of one tensor: they share storage (batch_tanh), are not contiguous
(batch_layernorm, batch_linear_lhs), and `view(-1)` of them does not compile."""

import torch
from torch.nn import functional as F


def tanhs(x, y):
    return torch.tanh(x), torch.tanh(y)


def norms(x, y):
    return F.layer_norm(x, (4,)), F.layer_norm(y, (4,))


def linears(x, y):
    return F.linear(x, y), F.linear(x, y[:3])


def views(x, y):
    return F.linear(x, y).view(-1), F.linear(x, y[:3]).view(-1)


x, y = torch.randn(4, 4), torch.randn(4, 4)
found = []
cases = {
    "tanhs": ("batch_tanh", tanhs),
    "norms": ("batch_layernorm", norms),
    "linears": ("batch_linear_lhs", linears),
    "views": ("batch_linear_lhs", views),
}
for what, (name, call) in cases.items():
    torch._dynamo.reset()
    try:
        a, b = torch.compile(call, options={"pre_grad_fusion_options": {name: {"min_fuse_set_size": 2}}})(x, y)
    except RuntimeError as error:
        found.append(f"{what} with {name}: {str(error).strip().splitlines()[0][:60]}")
        continue
    if a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr():
        found.append(f"{what} with {name}: one storage, strides {a.stride()} and {b.stride()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))
