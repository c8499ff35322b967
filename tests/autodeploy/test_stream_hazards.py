"""Graphs with work on a second stream, right and wrong."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from conformance.backends.autodeploy.stream_hazards import read_too_early


def record_event_passthrough(x): ...
def begin_aux_stream_passthrough(x): ...
def end_aux_stream_passthrough(x): ...
def wait_aux_stream_passthrough(x): ...
def product_aux(x): ...


def graph(*steps):
    """(name, function, what it reads …); `x` is the input."""
    made = {"x": (g := fx.Graph()).placeholder("x")}
    for name, function, *reads in steps:
        made[name] = g.create_node("call_function", function, tuple(made[r] for r in reads), name=name)
    g.output(made[steps[-1][0]])
    return fx.GraphModule({}, g)


RELU, VIEW, ADD = torch.ops.aten.relu.default, torch.ops.aten.t.default, torch.ops.aten.add.Tensor
RIGHT = {
    "an aux op reads what was recorded": [
        ("a", RELU, "x"),
        ("e", record_event_passthrough, "a"),
        ("b", RELU, "a"),
        ("c", product_aux, "e"),
        ("d", ADD, "b", "c"),
    ],
    "a view after the event is of what was there before it": [
        ("a", RELU, "x"),
        ("e", record_event_passthrough, "a"),
        ("v", VIEW, "a"),
        ("c", product_aux, "v"),
    ],
    "a region that is waited for": [
        ("a", RELU, "x"),
        ("s", begin_aux_stream_passthrough, "a"),
        ("b", RELU, "s"),
        ("f", end_aux_stream_passthrough, "b"),
        ("c", RELU, "a"),
        ("w", wait_aux_stream_passthrough, "c"),
        ("d", ADD, "w", "f"),
    ],
}
WRONG = {
    "an aux op reads what came after the event": (
        [("e", record_event_passthrough, "x"), ("a", RELU, "x"), ("c", product_aux, "a")],
        "c reads a on the second stream and does not wait for the main stream",
    ),
    "an aux op and no event": (
        [("a", RELU, "x"), ("c", product_aux, "a")],
        "c reads a on the second stream and does not wait for the main stream",
    ),
    "a view does not hide it": (
        [("e", record_event_passthrough, "x"), ("a", RELU, "x"), ("v", VIEW, "a"), ("c", product_aux, "v")],
        "c reads v on the second stream and does not wait for the main stream",
    ),
    "the wait comes after the read": (
        [
            ("s", begin_aux_stream_passthrough, "x"),
            ("b", RELU, "s"),
            ("f", end_aux_stream_passthrough, "b"),
            ("d", ADD, "x", "f"),
            ("w", wait_aux_stream_passthrough, "d"),
        ],
        "d reads f on the main stream and does not wait for the second stream",
    ),
    "a region reads what came after its begin": (
        [
            ("s", begin_aux_stream_passthrough, "x"),
            ("b", RELU, "s"),
            ("f", end_aux_stream_passthrough, "b"),
            ("m", RELU, "x"),
            ("c", product_aux, "m"),
        ],
        "c reads m on the second stream and does not wait for the main stream",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_waits_is_quiet(name: str) -> None:
    assert read_too_early(graph(*RIGHT[name])) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_reads_too_early_is_told(name: str) -> None:
    steps, said = WRONG[name]
    assert read_too_early(graph(*steps)) == [said]
