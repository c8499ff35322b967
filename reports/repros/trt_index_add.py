"""Rows added at the same index: an engine keeps one of them. Needs a GPU."""

import torch
import torch_tensorrt


class Add(torch.nn.Module):
    def forward(self, x, index, values):
        return (x * 1.0).index_put((index,), values * 1.0, accumulate=True)


x, values = torch.zeros(7, 5, device="cuda"), torch.randn(20, 5, device="cuda")
index = torch.randint(0, 7, (20,), device="cuda")
inputs = (x, index, values)
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Add(), inputs), inputs=inputs, min_block_size=1)
error = (compiled(*inputs) - Add()(*inputs)).abs().max().item()
raise SystemExit(f"wrong by {error:.3g}" if error > 0.01 else 0)
