"""Torch-TensorRT 2.14 cannot convert an arange whose bound is known at run time only if it goes downwards, or in steps that are a fraction: "Could
not get tensor shape". A neighbour of pytorch/TensorRT#4456.

Needs no GPU: it fails while the network is defined."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.mem_get_info = lambda *_: (1 << 36, 1 << 36)

import torch_tensorrt


class Fractions(torch.nn.Module):
    def forward(self, x):
        return torch.arange(0, x.shape[0], 0.75, device=x.device).sum() + x


class Downwards(torch.nn.Module):
    def forward(self, x):
        return torch.arange(x.shape[0] + 4, -1, -3, device=x.device) * x.sum()


device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(7, 2, device=device)
spec = torch_tensorrt.Input(min_shape=(2, 2), opt_shape=(7, 2), max_shape=(28, 2), dtype=torch.float32)
refused = []
for module in (Fractions(), Downwards()):
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=28)},))
    try:
        torch_tensorrt.dynamo.compile(program, inputs=[spec], min_block_size=1)
    except RuntimeError as error:
        if "Could not get tensor shape" in str(error):
            refused.append(type(module).__name__)
        else:
            print("not this defect:", str(error).splitlines()[0])
raise SystemExit(f"RuntimeError: Could not get tensor shape: {', '.join(refused)}" if refused else 0)
