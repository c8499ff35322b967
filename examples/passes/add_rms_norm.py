"""Residual add and RMSNorm into one custom op, as serving engines do it for every decoder layer.

conformance pass examples/passes/add_rms_norm.py:add_rms_norm
"""

from __future__ import annotations

import torch

EPS = 1e-6
BF16 = torch.bfloat16
micrographs = "norms.add_* norm.rmsnorm_two_consumers"


@torch.library.custom_op("conformance_examples::add_rms_norm", mutates_args=())
def fused(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """In a real engine this is one kernel; here it is the same arithmetic."""
    total = x + residual
    wide = total.to(torch.float32)
    normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * normal.to(total.dtype), total


@fused.register_fake
def _(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


def add_then_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is looked for: the way Hugging Face's Llama writes it."""
    total = x + residual
    wide = total.to(torch.float32)
    normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    return weight * normal.to(total.dtype), total


def replacement(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ops.conformance_examples.add_rms_norm(x, residual, weight, EPS)


def inputs() -> list[torch.Tensor]:
    return [torch.empty(2, 8, 64, dtype=BF16), torch.empty(2, 8, 64, dtype=BF16), torch.empty(64, dtype=BF16)]


add_rms_norm = (add_then_norm, replacement, inputs)
