"""What eager gives, where eager itself goes through Dynamo."""

from __future__ import annotations

import torch
from torch import nn

from conformance import oracle, scenario
from conformance.library import find


class Branched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


def test_branches_have_gradients_again_and_again() -> None:
    """Without Dynamo `torch.cond` has none, and under a dispatch mode Dynamo gives up on it for good."""
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        ref = oracle.reference(Branched(), (x,))
        assert ref.eager.error is None, ref.eager.error
        assert ref.eager.grads


def test_a_scenario_of_branches_is_played() -> None:
    micrograph = find("upstream.branches_with_gradients.weight_is_seen")
    ref = oracle.played(micrograph.build, micrograph.example, scenario.eager, False)
    assert ref.eager.error is None, ref.eager.error


def test_what_eager_refuses_is_refused_once() -> None:
    calls = []

    class Refuses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(x)
            raise ValueError("no")

    assert isinstance(oracle.reference(Refuses(), (torch.ones(3),)).eager.error, ValueError)
    assert len(calls) == 1
