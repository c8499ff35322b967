"""No report known: torch_tensorrt.compile drops a plain write to an input."""

import torch
import torch_tensorrt


class AddInput(torch.nn.Module):
    def forward(self, x):
        x.add_(1.0)
        return x * 2.0


device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.zeros(4, device=device)
compiled = torch_tensorrt.compile(AddInput().to(device), ir="dynamo", inputs=[x.clone()], min_block_size=1)
compiled(x)
assert torch.equal(x, torch.ones_like(x)), x
