"""Torch-TensorRT 2.14 cannot decompose a program with views of another dtype of its own: "View operation returned a tensor that is the same as
the input base tensor". torch.export decomposes the same program with its own table.

Needs no GPU."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo.lowering import get_decompositions


class Halves(torch.nn.Module):
    def forward(self, x):
        halves = x.view(torch.int32) + 1
        halves.mul_(3)
        return halves.view(torch.int64)


x = torch.arange(12).reshape(3, 4)
program = torch.export.export(Halves(), (x,), strict=False)
program.run_decompositions()
try:
    program.run_decompositions(get_decompositions())
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {str(error).splitlines()[0][:160]}") from None
