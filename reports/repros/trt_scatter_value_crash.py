"""Torch-TensorRT cannot compile `torch.scatter(x, 1, index, 1.0)`: the number becomes a float64 constant, which TensorRT has not.

Needs no GPU: it fails while the network is defined."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Scatter(torch.nn.Module):
    def forward(self, index, x):
        return torch.scatter(torch.zeros_like(x), 1, index, 1.0) * x


device = "cuda" if torch.cuda.is_available() else "cpu"
index, x = torch.zeros(3, 2, dtype=torch.int64, device=device), torch.randn(3, 5, device=device)
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Scatter(), (index, x)), inputs=[index, x], min_block_size=1)
except ValueError as error:
    raise SystemExit(f"ValueError: {error}") from None
except (AssertionError, RuntimeError) as error:
    print("not this defect:", str(error).splitlines()[0])
