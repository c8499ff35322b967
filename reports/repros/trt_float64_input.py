"""A float64 input: the engine is built for float32, and called with what the user gives. Needs a GPU."""

import torch
import torch_tensorrt


class Double(torch.nn.Module):
    def forward(self, x):
        return x.exp() + 1.0


x = torch.randn(45, dtype=torch.float64, device="cuda")
program = torch.export.export(Double(), (x,))
try:
    torch_tensorrt.dynamo.compile(program, inputs=[x], min_block_size=1, truncate_double=True)(x)
    program = torch.export.export(Double(), (x,))
    torch_tensorrt.dynamo.compile(program, inputs=[x], min_block_size=1, truncate_double=True, use_python_runtime=False)(x)
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {error}") from None
