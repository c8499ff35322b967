"""Torch-TensorRT 2.14 decomposes select_scatter at a negative index into a slice_scatter from -1 to 0, which is empty: the program does not run.

Needs no GPU: the graph after its decompositions is run in PyTorch."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

from torch_tensorrt.dynamo.lowering import get_decompositions


class LastRow(torch.nn.Module):
    def forward(self, x, row):
        return torch.select_scatter(x, row, 0, -1)


x, row = torch.zeros(4, 3), torch.ones(3)
try:
    lowered = torch.export.export(LastRow(), (x, row)).run_decompositions(get_decompositions()).module()
    same = torch.equal(lowered(x, row), LastRow()(x, row))
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {str(error).splitlines()[0]}") from None
raise SystemExit(0 if same else "another row was written")
