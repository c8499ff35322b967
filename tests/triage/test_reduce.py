"""The reducer, with a predicate that needs no compiler; plain dtypes and constants with the real one, too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx

from conformance import seeded
from conformance.stage import Stage
from conformance.triage import pipeline
from conformance.triage.graph_comparison import node_values
from conformance.triage.graph_reducer import Reducer
from conformance.triage.micrograph_subject import find
from conformance.triage.subgraph import CALLS, cut

sys.path.insert(0, str(Path(__file__).parent))
from hundred import Hundred, example_inputs


def size(gm: fx.GraphModule) -> int:
    return sum(node.op in CALLS for node in gm.graph.nodes)


def has(*targets: Any) -> Any:
    return lambda gm, inputs: all(any(n.target is t for n in gm.graph.nodes) for t in targets)


def graph() -> fx.GraphModule:
    return fx.symbolic_trace(Hundred())


def test_a_hundred_nodes_to_the_one_that_matters() -> None:
    gm = graph()
    assert size(gm) == 100
    reduced = Reducer(gm, example_inputs(), has(torch.tanh)).run()
    assert reduced.nodes == 1
    assert reduced.tries < 25


def test_a_suspect_is_tried_first() -> None:
    reduced = Reducer(graph(), example_inputs(), has(torch.tanh)).run(["aten.tanh.default"])
    assert (reduced.nodes, reduced.history[0]) == (1, "a suspect alone, small: 1 nodes")


def test_two_nodes_that_only_fail_together_both_stay() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(10):
                x = x + 1.0
            x = torch.exp(x)
            for _ in range(10):
                x = x * 0.5
            return torch.tanh(x)

    reduced = Reducer(fx.symbolic_trace(Module()), (torch.randn(4),), has(torch.tanh, torch.exp)).run()
    assert {n.target for n in reduced.gm.graph.nodes if n.op == "call_function"} == {torch.tanh, torch.exp}


def test_a_cut_computes_what_the_whole_computed_there() -> None:
    gm, inputs = graph(), example_inputs()
    values = node_values(gm, inputs)
    calls = [n for n in gm.graph.nodes if n.op.startswith("call_")]
    made = cut(gm, calls[40:70], values)
    assert made is not None
    (out,) = made[0](*made[1])
    torch.testing.assert_close(out, values[calls[69]])


def test_sizes_shrink_last() -> None:
    reduced = Reducer(graph(), example_inputs(), has(torch.tanh)).run()
    assert all(n <= 7 for x in reduced.inputs for n in x.shape)


def test_where_any_op_may_be_wrong_a_probe_finds_it_in_two_tries() -> None:
    def wrong_tanh(gm: fx.GraphModule, inputs: tuple[Any, ...], fused: bool) -> Any:
        twin = fx.GraphModule(gm, gm.graph)
        for node in twin.graph.nodes:
            node.target = torch.sinh if node.target is torch.tanh else node.target
        twin.recompile()
        return twin(*inputs)

    names = ["aten.add.Tensor", "aten.sin.default", "aten.mul.Tensor", "aten.tanh.default", "aten.cos.default"]
    reduced = Reducer(graph(), example_inputs(), has(torch.tanh), probe=wrong_tanh).run(names)
    assert reduced.nodes == 1
    assert reduced.history[0].endswith("ops side by side: 1 wrong")
    assert reduced.history[1] == "a suspect alone, small: 1 nodes"


def test_where_no_op_is_wrong_alone_two_that_are_fused_are_looked_for() -> None:
    def loses_the_reader_of_exp(gm: fx.GraphModule, inputs: tuple[Any, ...], fused: bool) -> Any:
        twin = fx.GraphModule(gm, gm.graph)
        for node in twin.graph.nodes if fused else ():
            if any(source.target is torch.exp for source in node.all_input_nodes) and node.op != "output":
                node.target = torch.zeros_like
                node.args = node.args[:1]
        twin.recompile()
        return twin(*inputs)

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cos(torch.tanh(torch.exp(torch.sin(x + 1.0))))

    reducer = Reducer(
        fx.symbolic_trace(Module()), (torch.randn(4),), has(torch.tanh, torch.exp), probe=loses_the_reader_of_exp
    )
    assert reducer.probe is not None and reducer.probe.wrong_alone() == []
    reduced = reducer.run(["aten.tanh.default", "aten.exp.default"])
    assert (reduced.nodes, reduced.history[-1]) == (2, "suspects together: 2 nodes")


def test_a_cheap_answer_that_does_not_hold_is_asked_again_the_dear_way() -> None:
    reduced = Reducer(graph(), example_inputs(), has(torch.tanh), sure=has(torch.tanh, torch.cos)).run(
        ["aten.tanh.default"]
    )
    assert {torch.tanh, torch.cos} <= {n.target for n in reduced.gm.graph.nodes}
    assert reduced.nodes <= 5


# ------------------------------------------------------------------------------------- dtypes and constants


def numbers(gm: fx.GraphModule) -> list[Any]:
    given = [a for n in gm.graph.nodes for a in (*n.args, *n.kwargs.values())]
    return [a for a in given if type(a) in (int, float)]


def reduced_to(function: Any, inputs: tuple[Any, ...], holds: Any, **more: Any) -> Reducer:
    reducer = Reducer(fx.symbolic_trace(function), inputs, holds, **more)
    reducer.run()
    return reducer


def test_constants_and_dtypes_that_do_not_matter_become_plain() -> None:
    x, y = torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.int16)
    found = reduced_to(lambda x, y: torch.add(x * 3.7, y * 12, alpha=45), (x, y), has(torch.add)).best
    assert [v.dtype for v in found.inputs] == [torch.float32, torch.int64]
    assert numbers(found.gm) == [1]
    assert found.history[-2:] == [
        "input 0: torch.bfloat16 → torch.float32, input 1: torch.int16 → torch.int64",
        "45 → 1",
    ]


def test_a_constant_and_a_dtype_that_matter_stay() -> None:
    def holds(gm: fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
        return inputs[0].dtype == torch.float16 and 3.7 in numbers(gm)

    inputs = (torch.ones(3, dtype=torch.float16), torch.ones(3, dtype=torch.float64))
    found = reduced_to(lambda x, y: (torch.clamp(x, -2.25, 3.7), y), inputs, holds).best
    assert ([v.dtype for v in found.inputs], numbers(found.gm)) == ([torch.float16, torch.float32], [1.0, 3.7])


@pytest.mark.parametrize(("odd", "tries"), [(0.1, 0), (3, 0), (-float("inf"), 0), (0.123, 1), (37, 1)])
def test_what_is_plain_already_costs_no_try(odd: float, tries: int) -> None:
    found = reduced_to(lambda x: torch.clamp(x, odd), (torch.ones(3),), has(torch.clamp)).best
    assert found.tries == tries


def test_sizes_and_indices_are_no_constants() -> None:
    found = reduced_to(lambda x: x.view(12, 3)[11:], (torch.ones(36),), lambda gm, inputs: size(gm) == 2, small=50).best
    assert "12" in str(found.gm.graph) and "11" in str(found.gm.graph)


def test_no_constant_makes_a_nan_of_a_number() -> None:
    """A remainder by zero is another defect."""
    found = reduced_to(
        lambda x: torch.fmod(x, 37.5), (torch.ones(3),), lambda gm, inputs: not {1.0, 2.0, 40.0, 0.5} & {*numbers(gm)}
    )
    assert numbers(found.best.gm) == [37.5]


def test_plain_ones_that_turn_out_to_be_another_finding_are_taken_back() -> None:
    reducer = reduced_to(
        lambda x: torch.clamp(x, -2.25, 3.7), (torch.ones(3),), has(torch.clamp), sure=lambda gm, _: 3.7 in numbers(gm)
    )
    assert (numbers(reducer.best.gm), reducer.slipped) == ([-2.25, 3.7], False)


def test_plain_ones_that_would_be_wrong_without_fusion_are_taken_back() -> None:
    """The finding is fusion's: nothing is wrong alone, until a constant is 1."""

    def probe(gm: fx.GraphModule, inputs: tuple[Any, ...], fused: bool) -> Any:
        return [out + 1 if fused or 1.0 in numbers(gm) else out for out in gm(*inputs)]

    inputs = (torch.ones(3),)
    found = reduced_to(lambda x: torch.clamp(x, -2.25, 3.7), inputs, has(torch.clamp), probe=probe)
    assert numbers(found.best.gm) == [-2.25, 3.7]


CLAMP = """import torch
torch.manual_seed(0)
example_inputs = (torch.randn(6, 33, dtype=torch.bfloat16) * 3,)
def Thing(x): return torch.clamp(torch.relu(x), -3.7, 1.2345)
"""
ADDMM = """import torch
torch.manual_seed(0)
example_inputs = tuple(torch.randn(6, 6, dtype=torch.bfloat16) for _ in range(3))
def Thing(x, a, b): return torch.relu(torch.addmm(x, a, b, beta=3.7, alpha=2.3))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "text", "left"),
    [("constants_lose_digits", CLAMP, [1.0, 1.2345]), ("addmm_drops_alpha", ADDMM, [1.0, 2.0])],
    ids=["one matters as it is", "one must not be 1"],
)
def test_the_real_compiler(tmp_path: Path, fault: str, text: str, left: list[float]) -> None:
    (tmp_path / "model.py").write_text(text)
    with seeded.get(fault):
        found = pipeline.triage(find(f"{tmp_path}/model.py:Thing"), limit=120)
    assert found.first is not None and found.first.cell.stage is Stage.CODEGEN
    assert found.reduced is not None and found.reduced.nodes == 1, found.reduced
    assert {x.dtype for x in found.reduced.inputs} == {torch.float32}
    assert numbers(found.reduced.gm) == left, found.reduced.history
