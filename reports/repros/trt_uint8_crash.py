"""Torch-TensorRT takes uint8 arithmetic for its engine and fails to convert it: the partitioner does not know what the converter refuses.

Needs no GPU: it fails while the network is defined."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Bytes(torch.nn.Module):
    def forward(self, x, y):
        return x + y, (x.float() / 2).to(torch.uint8)


device = "cuda" if torch.cuda.is_available() else "cpu"
x, y = (torch.arange(12, dtype=torch.uint8, device=device) for _ in range(2))
try:
    torch_tensorrt.dynamo.compile(torch.export.export(Bytes(), (x, y)), inputs=[x, y], min_block_size=1)
except ValueError as error:
    raise SystemExit(f"ValueError: {error}") from None
except (AssertionError, RuntimeError) as error:
    print("not this defect:", str(error).splitlines()[0])
