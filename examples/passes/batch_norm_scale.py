"""The scaling step of batch norm in inference, taken by a pattern that was written by hand from a graph of torch 2.13.

Until 2.13 Inductor decomposed batch norm to `1 / sqrt(var + eps)`; since 2.14 it is `rsqrt(var + eps)`, and the pattern finds nothing.

conformance pass examples/passes/batch_norm_scale.py:batch_norm_scale
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    Match,
    PatternMatcherPass,
    register_graph_pattern,
)

micrographs = "convolution.conv_bn_relu"
aten = torch.ops.aten


@torch.library.custom_op("conformance_examples::centre_and_scale", mutates_args=())
def fused(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, eps: float) -> torch.Tensor:
    shape = (-1, *(1 for _ in range(x.dim() - 2)))
    return (x - mean.view(shape)) * torch.rsqrt(var + eps).view(shape)


@fused.register_fake
def _(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(x)


def replacement(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.ops.conformance_examples.centre_and_scale(x, mean, var, eps)


def per_channel(value: Any) -> CallFunction:
    """A vector with one element a channel, as it stands beside an image: two dims more."""
    return CallFunction(aten.unsqueeze.default, CallFunction(aten.unsqueeze.default, value, -1), -1)


root = CallFunction(aten.sqrt.default, CallFunction(aten.add.Tensor, KeywordArg("var"), KeywordArg("eps")))
scale = CallFunction(aten.mul.Tensor, CallFunction(aten.reciprocal.default, root), 1)
centred = CallFunction(aten.sub.Tensor, KeywordArg("x"), per_channel(KeywordArg("mean")))
batch_norm_scale = PatternMatcherPass()


@register_graph_pattern(
    CallFunction(aten.mul.Tensor, centred, per_channel(scale)),
    pass_dict=batch_norm_scale,
)
def times_reciprocal(match: Match, x: torch.fx.Node, mean: torch.fx.Node, var: torch.fx.Node, eps: float) -> None:
    match.replace_by_example(replacement, [x, mean, var, eps])
