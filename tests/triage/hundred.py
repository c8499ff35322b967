"""A graph of a hundred nodes, one of which a seeded fault breaks: `triage hundred.py:Hundred --seeded tanh_written_as_sinh`."""

from __future__ import annotations

import torch
from torch import nn

OPS = (
    lambda x: x * 1.01,
    lambda x: x + 0.1,
    torch.sin,
    lambda x: x - 0.05,
    torch.cos,
    lambda x: x.abs(),
    torch.sigmoid,
)


class Hundred(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for number in range(99):
            x = torch.tanh(x + y) if number == 61 else OPS[number % len(OPS)](x)
        return x


def example_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(7, 33), torch.randn(7, 33) * 3
