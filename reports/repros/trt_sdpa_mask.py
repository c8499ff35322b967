"""Torch-TensorRT 2.11 computes attention with a boolean mask as if there were none. Needs a GPU."""

import torch
import torch_tensorrt


class Masked(torch.nn.Module):
    def forward(self, q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


q, k, v = (torch.randn(2, 2, 9, 16, device="cuda") for _ in range(3))
mask = torch.rand(2, 1, 9, 9, device="cuda") > 0.5
mask |= torch.eye(9, dtype=torch.bool, device="cuda")
inputs = (q, k, v, mask)
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Masked(), inputs), inputs=inputs, min_block_size=1)
error = (compiled(*inputs) - Masked()(*inputs)).abs().max().item()
raise SystemExit(f"wrong by {error:.3g}" if error > 0.01 else 0)
