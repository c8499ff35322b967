"""torch.export takes a program whose inputs share storage and one of them is written to; `run_decompositions`, the first thing that
Torch-TensorRT does with it, fails an assertion. Needs neither a GPU nor Torch-TensorRT."""

import torch


class Aliased(torch.nn.Module):
    def forward(self, x, y):
        x.mul_(2.0)
        return y + 1.0


x = torch.randn(6, 11)
program = torch.export.export(Aliased(), (x, x.view(-1)[:33].view(3, 11)))
try:
    program.run_decompositions({})
except AssertionError as error:
    raise SystemExit(f"AssertionError: {error}") from None
