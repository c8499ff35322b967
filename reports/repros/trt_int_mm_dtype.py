"""An int8 matmul, scaled by a float: the engine gives int32 (2.11), or whole numbers (2.14). Needs a GPU."""

import torch
import torch_tensorrt


class Scaled(torch.nn.Module):
    def forward(self, x, y):
        return torch._int_mm(x, y) * 0.013


x = torch.randint(-5, 5, (24, 32), dtype=torch.int8, device="cuda")
y = torch.randint(-5, 5, (32, 16), dtype=torch.int8, device="cuda")
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Scaled(), (x, y)), inputs=[x, y], min_block_size=1)
found, eager = compiled(x, y), Scaled()(x, y)
if found.dtype != eager.dtype:
    raise SystemExit(f"{found.dtype}, eager gives {eager.dtype}")
error = (found - eager).abs().max().item()
raise SystemExit(f"wrong by {error:.3g}" if error > 0.01 else 0)
