"""Seeded changes of the compiler that take a match away: the stage is named, and the step inside it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx

from conformance import Contract, Micrograph, Tensor
from conformance.stage import Stage

pytestmark = pytest.mark.own_process


class Gated(Micrograph):
    """SiLU of a gate, times another value, plus a product of matrices."""

    inputs = (Tensor("6 8"), Tensor("6 8"), Tensor("8 8"), Tensor("8"))
    contract = Contract()

    def forward(self, gate: torch.Tensor, up: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.silu(gate) * up) @ weight + bias


def silu_times(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * up


def product_plus(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x @ weight + bias


def examined(rule: Any, hook: str = "post_grad_pre") -> Any:
    from conformance.passes.examination import Depth, examine
    from conformance.passes.subject import subject_of

    subject = rule if not isinstance(rule, tuple) else subject_of(rule, hook=hook)
    return examine(subject, Gated, depth=Depth(variants=False, neighbours=False, cost=False))


def rule(function: Any, inputs: int) -> Any:
    sizes: list[tuple[int, ...]] = [(6, 8), (6, 8)] if inputs == 2 else [(6, 8), (8, 8), (8,)]
    return (function, function, [torch.empty(*size) for size in sizes])


def test_a_decomposition_that_is_switched_off_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance.backends.inductor.seam import seam
    from conformance.passes.compare import change
    from conformance.passes.subject import subject_of

    subject = subject_of(rule(silu_times, 2))
    before = examined(subject)
    assert before.matches == {"silu_times": 1} and before.loss is None
    monkeypatch.delitem(seam.select_decompositions(), torch.ops.aten.silu.default)
    after = examined(subject)
    assert after.matches == {"silu_times": 0}
    assert after.loss is not None and after.loss.stage is Stage.DECOMPOSITION
    assert after.loss.step == "the decomposition of aten.silu.default is not done"
    moved = change(before, after)
    assert moved is not None and moved.stage is Stage.DECOMPOSITION and "aten.silu.default" in moved.step


def test_a_decomposition_that_takes_the_op_away_is_named() -> None:
    from torch._inductor.pattern_matcher import CallFunction, KeywordArg, PatternMatcherPass, register_graph_pattern

    from conformance.passes.subject import subject_of

    patterns = PatternMatcherPass()
    silu = CallFunction(torch.ops.aten.silu.default, KeywordArg("x"))
    register_graph_pattern(silu, pass_dict=patterns)(lambda match, x: None)
    loss = examined(subject_of(patterns, "silu")).loss
    assert loss is not None and loss.stage is Stage.DECOMPOSITION
    assert loss.step == "the decomposition of aten.silu.default"


def test_a_pass_that_now_runs_earlier_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.fx_passes import post_grad

    from conformance.passes.subject import subject_of

    subject = subject_of(rule(product_plus, 3))
    assert examined(subject).matches == {"product_plus": 1}
    original = post_grad.reorder_for_locality

    def first_the_patterns(graph: fx.Graph) -> Any:
        for patterns in post_grad.pass_patterns:
            patterns.apply(graph)
        return original(graph)

    monkeypatch.setattr(post_grad, "reorder_for_locality", first_the_patterns)
    made = examined(subject)
    assert made.matches == {"product_plus": 0}
    assert made.loss is not None and made.loss.stage is Stage.POSTGRAD
    assert made.loss.step.startswith("the post-grad pass reorder_for_locality (pattern")


def test_a_capture_that_inserts_a_copy_is_named() -> None:
    from conformance.backends.inductor.seam import seam
    from conformance.passes.subject import subject_of

    def with_a_copy(proceed: Any, output: Any, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        node = next(n for n in gm.graph.nodes if "silu" in n.name)
        with gm.graph.inserting_after(node):
            copy = gm.graph.call_method("clone", (node,))
        node.replace_all_uses_with(copy, delete_user_cb=lambda user: user is not copy)
        copy.meta = dict(node.meta)
        gm.recompile()
        return proceed(output, gm, *args, **kwargs)

    subject = subject_of(rule(silu_times, 2), hook="joint_pre")
    assert examined(subject).matches == {"silu_times": 1}
    with seam.subscribe(call_backend=with_a_copy):
        made = examined(subject)
    assert made.matches == {"silu_times": 0}
    assert made.loss is not None and made.loss.stage is Stage.CAPTURE and made.loss.step == "Dynamo's capture"
    assert made.loss.misses[0].first is not None and "aten.clone.default" in made.loss.misses[0].first.found
