"""SiLU of a gate, times the other half: one kernel in every serving engine.

Two patterns: one is traced from an example, so that it has Inductor's own decomposition of silu in it; the other is written by hand with
`aten.silu`, which Inductor decomposes before any post-grad pass sees it. `conformance pass` says so.

conformance pass examples/passes/silu_and_mul.py:silu_and_mul
"""

from __future__ import annotations

import torch
from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    Match,
    PatternMatcherPass,
    fwd_only,
    register_graph_pattern,
    register_replacement,
)
from torch.nn import functional as F

micrographs = "mlp.swiglu mlp.swiglu_tapped"
aten = torch.ops.aten


@torch.library.custom_op("conformance_examples::silu_and_mul", mutates_args=())
def fused(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


@fused.register_fake
def _(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(gate)


def by_example(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


def replacement(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.ops.conformance_examples.silu_and_mul(gate, up)


silu_and_mul = PatternMatcherPass()
register_replacement(by_example, replacement, [torch.empty(2, 8), torch.empty(2, 8)], fwd_only, silu_and_mul)


@register_graph_pattern(
    CallFunction(aten.mul.Tensor, CallFunction(aten.silu.default, KeywordArg("gate")), KeywordArg("up")),
    pass_dict=silu_and_mul,
)
def by_hand(match: Match, gate: torch.fx.Node, up: torch.fx.Node) -> None:
    match.replace_by_example(replacement, [gate, up])
