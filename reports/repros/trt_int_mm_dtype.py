"""An int8 matmul, scaled by a float: the engine gives int32. Needs a GPU."""

import torch
import torch_tensorrt


class Scaled(torch.nn.Module):
    def forward(self, x, y):
        return torch._int_mm(x, y) * 0.013


x = torch.randint(-5, 5, (24, 32), dtype=torch.int8, device="cuda")
y = torch.randint(-5, 5, (32, 16), dtype=torch.int8, device="cuda")
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Scaled(), (x, y)), inputs=[x, y], min_block_size=1)
dtype = compiled(x, y).dtype
raise SystemExit(f"{dtype}, eager gives torch.float32" if dtype != torch.float32 else 0)
