"""Which changes of an input ask for a new capture."""

from __future__ import annotations

import pytest
import torch

from conformance.backends.base import Case
from conformance.backends.inductor import guard_probes
from conformance.contract import Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.target import Target


class _OfTwo(Micrograph):
    """Two inputs."""

    dims = {"n": 8}
    inputs = (Tensor("n n"), Tensor("n"))
    contract = Contract()


class _Both(_OfTwo):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2 + y


class _SecondAlone(_OfTwo):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y * 2


class _DeviceOfTheFirst(_OfTwo):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ones(8, device=x.device) + y


@pytest.mark.parametrize(("micrograph", "asked"), [(_Both, 0), (_SecondAlone, 1), (_DeviceOfTheFirst, 1)])
def test_an_input_that_is_not_computed_with_need_not_be_guarded(micrograph: type[Micrograph], asked: int) -> None:
    found = guard_probes.probe(Case(micrograph, Target.parse("cpu")))
    assert found["guarded"].pop(f"input {asked} is float64")
    assert all(f"input {asked} " in what or what == "gradients are on" for what in found["guarded"])
    assert found["stale"] == []
