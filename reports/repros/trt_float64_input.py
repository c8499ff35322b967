"""A float64 input with the default settings: the engine is built for float32, and refuses what the user gives. Needs a GPU."""

import torch
import torch_tensorrt


class Double(torch.nn.Module):
    def forward(self, x):
        return x.exp() * 1.0000000001 + 1e-12


x = torch.randn(45, dtype=torch.float64, device="cuda")
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Double(), (x,)), inputs=[x], min_block_size=1, disable_tf32=True)
try:
    compiled(x)
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {error}") from None
