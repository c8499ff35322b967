"""RMSNorm of queries over the head dim, then the rotary embedding: the rewrite of pytorch/pytorch#190886.

conformance pass examples/passes/qk_norm_rope.py:qk_norm_rope
"""

from __future__ import annotations

import torch

EPS = 1e-6
micrographs = "rotary.*"


@torch.library.custom_op("conformance_examples::norm_rope", mutates_args=())
def fused(x: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: float) -> torch.Tensor:
    normal = weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))
    first, second = normal.chunk(2, dim=-1)
    return normal * cos + torch.cat((-second, first), dim=-1) * sin


@fused.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(x)


def norm_then_rope(x: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    normal = weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS))
    first, second = normal.chunk(2, dim=-1)
    return normal * cos + torch.cat((-second, first), dim=-1) * sin


def replacement(x: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return torch.ops.conformance_examples.norm_rope(x, weight, cos, sin, EPS)


def inputs() -> list[torch.Tensor]:
    return [torch.empty(2, 4, 6, 16), torch.empty(16), torch.empty(6, 16), torch.empty(6, 16)]


qk_norm_rope = (norm_then_rope, replacement, inputs)
