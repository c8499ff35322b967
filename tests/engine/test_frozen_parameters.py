"""Under freezing the program does not take its parameters; the graph before it does, and is made to hold them, so that the ladder can run it."""

from __future__ import annotations

import torch
from torch import fx

from conformance.backends.inductor.watch import _frozen


class Scaled(torch.nn.Module):
    def forward(self, weight, bias, x):
        return x * weight + bias


class Frozen(torch.nn.Module):
    def forward(self, bias, x):
        return x * 2.0 + bias


def test_what_became_a_constant_is_one_of_the_earlier_graph() -> None:
    weight, bias, x = torch.full((3,), 2.0), torch.ones(3), torch.arange(3.0)
    before = _frozen(fx.symbolic_trace(Scaled()), fx.symbolic_trace(Frozen()), (weight, bias))
    assert torch.equal(before(bias, x), x * 2 + 1)


def test_where_nothing_is_frozen_the_graph_stays() -> None:
    traced = fx.symbolic_trace(Scaled())
    assert _frozen(traced, fx.symbolic_trace(Scaled()), (torch.ones(3),)) is traced
    assert [node.name for node in traced.graph.nodes if node.op == "placeholder"] == ["weight", "bias", "x"]


def test_a_graph_whose_parameters_are_not_known_stays() -> None:
    traced = fx.symbolic_trace(Scaled())
    assert _frozen(traced, fx.symbolic_trace(Frozen()), ()) is traced
    assert "weight" in {node.name for node in traced.graph.nodes}
