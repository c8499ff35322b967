"""A graph made for the code generator can be run: an op that returns nothing stands for what it wrote."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from conformance.errors import CannotRun
from conformance.graph_runner import runnable


def _graph(used: bool) -> fx.GraphModule:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    added = graph.call_function(torch.ops.aten._foreach_add_.List, ([x], [y]))
    first = graph.call_function(lambda values, at: values[at], (added, 0)) if used else x
    graph.output((first,))
    return fx.GraphModule({}, graph)


def test_what_was_written_stands_for_what_is_not_returned() -> None:
    x = torch.ones(3)
    (got,) = runnable(_graph(used=True))(x, torch.ones(3))
    assert got is x and torch.equal(x, torch.full((3,), 2.0))


def test_a_graph_that_can_be_called_is_called_itself() -> None:
    gm = _graph(used=False)
    assert runnable(gm) is gm


def test_a_graph_that_holds_how_code_is_made_is_not_run() -> None:
    def handler(*values: object) -> None:
        raise AssertionError("called")

    handler.__module__ = "torch._inductor.fx_passes.mkldnn_fusion"
    graph = fx.Graph()
    graph.output((graph.call_function(handler, (graph.placeholder("x"),)),))
    with pytest.raises(CannotRun):
        runnable(fx.GraphModule({}, graph))(torch.ones(3))
