"""torch.export (2.14) raises PendingUnbackedSymbolNotFound for torch.narrow from a start that a tensor holds.

Torch-TensorRT and AutoDeploy have no other way in than torch.export."""

import torch


class Window(torch.nn.Module):
    def forward(self, x, start):
        return torch.narrow(x, 0, start, 3) * 2


x, start = torch.randn(7, 4), torch.tensor(2)
Window()(x, start)
try:
    torch.export.export(Window(), (x, start), strict=False)
except Exception as error:
    if type(error).__name__ != "PendingUnbackedSymbolNotFound":
        raise
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
