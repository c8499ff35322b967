"""The reducer, with a predicate that needs no compiler."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import fx

from conformance.triage.reduce import Reducer, cut, size, values_of

sys.path.insert(0, str(Path(__file__).parent))
from hundred import Hundred, example_inputs


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
    values = values_of(gm, inputs)
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

    reducer = Reducer(fx.symbolic_trace(Module()), (torch.randn(4),), has(torch.tanh, torch.exp), probe=loses_the_reader_of_exp)
    assert reducer.wrong_alone() == []
    reduced = reducer.run(["aten.tanh.default", "aten.exp.default"])
    assert (reduced.nodes, reduced.history[-1]) == (2, "suspects together: 2 nodes")


def test_a_cheap_answer_that_does_not_hold_is_asked_again_the_dear_way() -> None:
    reduced = Reducer(graph(), example_inputs(), has(torch.tanh), sure=has(torch.tanh, torch.cos)).run(["aten.tanh.default"])
    assert {torch.tanh, torch.cos} <= {n.target for n in reduced.gm.graph.nodes}
    assert reduced.nodes <= 5
