"""The rotary embedding's last step as `addcmul`, taken by a pattern that is written by hand.

Inductor decomposed `addcmul` into products and a sum until 2.11; since 2.12 it is left whole, and the pattern finds it.

conformance pass examples/passes/rotate_addcmul.py:rotate_addcmul
"""

from __future__ import annotations

import torch
from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    Match,
    PatternMatcherPass,
    register_graph_pattern,
)

micrographs = "rotary.*"
aten = torch.ops.aten


@torch.library.custom_op("conformance_examples::rotate", mutates_args=())
def fused(base: torch.Tensor, turned: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(base, turned, sin)


@fused.register_fake
def _(base: torch.Tensor, turned: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(base)


def replacement(base: torch.Tensor, turned: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return torch.ops.conformance_examples.rotate(base, turned, sin)


rotate_addcmul = PatternMatcherPass()


@register_graph_pattern(
    CallFunction(aten.addcmul.default, KeywordArg("base"), KeywordArg("turned"), KeywordArg("sin")),
    pass_dict=rotate_addcmul,
)
def addcmul(match: Match, base: torch.fx.Node, turned: torch.fx.Node, sin: torch.fx.Node) -> None:
    match.replace_by_example(replacement, [base, turned, sin])
