"""Torch-TensorRT 2.14 cannot lower a slice_scatter in the last dim from a size that is known at run time only: "shape '[1, 1]' is invalid for
input of size …". A neighbour of pytorch/TensorRT#4236.

Needs no GPU: it fails while the graph is lowered."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Scatter(torch.nn.Module):
    def forward(self, x, y):
        return torch.slice_scatter(x * 2, y, -1, y.shape[1])


device = "cuda" if torch.cuda.is_available() else "cpu"
x, y = torch.randn(3, 14, device=device), torch.randn(3, 7, device=device)
n = torch.export.Dim("n", min=2, max=28)
program = torch.export.export(Scatter(), (x, y), dynamic_shapes=({1: 2 * n}, {1: n}))
specs = [
    torch_tensorrt.Input(min_shape=(3, k * 2), opt_shape=(3, k * 7), max_shape=(3, k * 28), dtype=torch.float32) for k in (2, 1)
]
try:
    torch_tensorrt.dynamo.compile(program, inputs=specs, min_block_size=1, dryrun=True)
except RuntimeError as error:
    if "is invalid for input of size" in str(error):
        raise SystemExit(f"RuntimeError: {str(error).splitlines()[0]}") from None
    print("not this defect:", str(error).splitlines()[0])
