"""RMSNorm whose result is quantised to fp8 with a static scale, in one op: no full-precision result is written to memory.

The pass is an object of its own with a `PatternMatcherPass` inside, as vLLM's passes are.

conformance pass examples/passes/rms_norm_fp8.py:NormThenQuantise
"""

from __future__ import annotations

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement

EPS = 1e-6
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max
micrographs = "norms.norm_fp8*"


def norm_and_quantise(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.to(torch.float32)
    normal = weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(BF16)
    return (normal.to(torch.float32) / scale).clamp(-LARGEST, LARGEST).to(FP8)


@torch.library.custom_op("conformance_examples::rms_norm_fp8", mutates_args=())
def fused(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    return norm_and_quantise(x, weight, scale, eps)


@fused.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(x, dtype=FP8)


class NormThenQuantise(CustomGraphPass):
    """Applied to the graph after autograd."""

    hook = "post_grad_post"

    def __init__(self) -> None:
        self.patterns = PatternMatcherPass(pass_name="rms_norm_fp8")
        example = [torch.empty(4, 64, dtype=BF16), torch.empty(64, dtype=BF16), torch.empty(1)]
        register_replacement(self.pattern, self.replacement, example, fwd_only, self.patterns)

    @staticmethod
    def pattern(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return norm_and_quantise(x, weight, scale, EPS)

    @staticmethod
    def replacement(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.ops.conformance_examples.rms_norm_fp8(x, weight, scale, EPS)

    def __call__(self, graph: torch.fx.Graph) -> None:
        self.patterns.apply(graph)

    def uuid(self) -> bytes:
        return get_hash_for_files((__file__,))
