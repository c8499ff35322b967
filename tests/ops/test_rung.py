"""The rungs that compile: what is right passes with the operators it became, and a decomposition that is wrong is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.backends.inductor.seam import seam as inductor
from conformance.ops.call import Call, Hole, Key, program
from conformance.ops.examination import Judged, Task, examine
from conformance.ops.rung import Decomposed, owners

from .database import operator


def judged(forms: tuple[str, ...]) -> list[Judged]:
    said: list[Any] = []
    examine(Task(operator("mul"), ("float32",), forms, 2, (Decomposed(),)), said.append)
    return [one for one in said if isinstance(one, Judged)]


@pytest.mark.own_process
def test_decomposed() -> None:
    found = judged(("plain", "transposed", "in_place_on_view", "grad"))
    assert {one.key.form for one in found} == {"plain", "transposed", "in_place_on_view", "grad"}
    assert not [one.findings for one in found if one.findings]
    assert {one.ops for one in found if one.key.form == "plain"} == {("aten.mul.Tensor",)}


@pytest.mark.own_process
def test_a_wrong_decomposition_is_found() -> None:
    def table(proceed: Callable[..., Any]) -> dict[Any, Any]:
        return {**proceed(), torch.ops.aten.mul.Tensor: lambda a, b: torch.sub(a, b)}

    with inductor.subscribe(select_decompositions=table):
        found = judged(("plain",))
    assert {kind for one in found for kind, _ in one.findings} == {"wrong_result"}
    assert "torch.mul(float32[3, 4], float32[3, 4])" in {one.sentence for one in found}


def test_a_node_belongs_to_the_call_whose_tensors_it_is_computed_from() -> None:
    key = Key("float32", "plain", 0)
    calls = [
        Call(key, "torch.add", (Hole(0), Hole(1)), {}, (torch.ones(2), torch.ones(2))),
        Call(key, "torch.mul", (Hole(0), 2), {}, (torch.ones(2),)),
    ]
    gm = torch.fx.symbolic_trace(program(calls).function)
    names = {str(node.target.__name__): node.name for node in gm.graph.nodes if node.op == "call_function"}
    found = owners(gm, calls, [0, 1, 2])
    assert (found[names["add"]], found[names["mul"]]) == (0, 1)


@pytest.mark.own_process
def test_a_random_operator_is_compiled_itself_without_the_seed_that_the_database_sets_around_it() -> None:
    from conformance.ops.operator import operators

    said: list[Any] = []
    examine(Task(operators()["randn_like"], ("float32",), ("plain",), 1, (Decomposed(),)), said.append)
    (one,) = [one for one in said if isinstance(one, Judged)]
    assert (one.findings, one.note) == ([], ""), one
