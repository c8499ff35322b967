"""torch.export (2.14) cannot decompose a program that reads its input through a view of another dtype, returns a view of what it computed in the
first dtype, and writes to the input: "View operation returned a tensor that is the same as the input base tensor"."""

import torch


class Halves(torch.nn.Module):
    def forward(self, x):
        halves = x.view(torch.int32) + 1
        halves.mul_(3)
        return halves.view(torch.int64)


x = torch.arange(12).reshape(3, 4)
Halves()(x)
try:
    torch.export.export(Halves(), (x,), strict=False).run_decompositions()
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {str(error).splitlines()[0][:160]}") from None
