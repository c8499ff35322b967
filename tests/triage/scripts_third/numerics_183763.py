"""pytorch#183763: sinh of 89 is finite in eager and infinite when compiled."""

import torch

x = torch.tensor([88.9, 89.2, -89.0, 1.0])
model = torch.nn.Sequential(torch.nn.Identity())


class Sinh(torch.nn.Module):
    def forward(self, x):
        return torch.sinh(model(x)) * 0.5


net = Sinh()
got = torch.compile(net)(x)
assert torch.isfinite(got).all(), got
