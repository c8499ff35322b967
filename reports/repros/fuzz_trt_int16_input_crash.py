"""Torch-TensorRT cannot be given an int16 tensor at all: the input spec is refused with a TypeError, and nothing is left to PyTorch.

Found by shape fuzzing (a generated graph, shrunk to one line). Needs no GPU: it fails before anything is built. Exits 1 while the
defect is there."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Difference(torch.nn.Module):
    def forward(self, x):
        return torch.diff(x, dim=-1)


device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.arange(4, dtype=torch.int16, device=device).reshape(2, 2)
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Difference(), (x,)), inputs=[x], min_block_size=1)
except TypeError as error:
    raise SystemExit(f"TypeError: {error}") from None
except (AssertionError, RuntimeError) as error:
    print("not this defect:", str(error).splitlines()[0])
