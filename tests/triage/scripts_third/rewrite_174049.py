"""pytorch#174049: attention written by hand with a scale of its own gets the default scale."""

import torch

torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, 8, 16) for _ in range(3))


class Attention(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, q, k, v):
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * self.scale, dim=-1)
        return weights.matmul(v)


module = Attention(0.7)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(module)(q, k, v), module(q, k, v))
