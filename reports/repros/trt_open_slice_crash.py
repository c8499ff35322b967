"""Torch-TensorRT 2.14.0 cannot compile a write to an open slice: `x[1:4, ::2].mul_(-3)`.

An open end is 2**63 - 1 in the graph. The slice_scatter converter does not clamp it to the size of the dim and asks numpy for as many
indices: `ValueError: array is too big`. Needs no GPU: it fails before the engine is built."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class OpenSlice(torch.nn.Module):
    def forward(self, x):
        x[1:4, ::2].mul_(-3.0)
        return x.sum(dim=-1)


x = torch.randn(8, 15, device="cuda" if torch.cuda.is_available() else "cpu")
try:
    torch_tensorrt.dynamo.compile(torch.export.export(OpenSlice(), (x,)), inputs=[x], min_block_size=1)
except ValueError as error:
    raise SystemExit(f"ValueError: {error}") from None
except (AssertionError, RuntimeError) as error:
    print("not this defect:", str(error).splitlines()[0])
