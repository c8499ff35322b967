"""torch.export (2.14) fails on torch.func.vmap of jacrev or jacfwd: "'Tensor' object has no attribute 'constant'".

Torch-TensorRT and AutoDeploy have no other way in than torch.export."""

import torch


class Jacobians(torch.nn.Module):
    def forward(self, x):
        return torch.func.vmap(torch.func.jacrev(torch.sin))(x)


x = torch.randn(3, 2)
Jacobians()(x)
try:
    torch.export.export(Jacobians(), (x,), strict=False)
except AttributeError as error:
    raise SystemExit(f"AttributeError: {error}") from None
