"""What a GPU refuses, the described one refuses; what only the emulation cannot do is unavailable, and no finding."""

from __future__ import annotations

import pytest
import torch

from conformance import backends
from conformance.contract import Capture, Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import Target

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache
SM90 = Target("sm_90")
calls = {"made": 0}


def examined(micrograph: type[Micrograph], *stages: Stage) -> dict[Stage, tuple[str, str]]:
    found = results_here(micrograph, backends.get("inductor"), SM90, stages or STAGES)
    return {stage: (str(result.verdict), result.reason) for stage, result in found.items()}


class TwoDevices(Micrograph):
    """A tensor of the host is added to one of the GPU: eager refuses that."""

    inputs = (Tensor("3"),)
    contract = Contract()

    def forward(self, x):
        return x + torch.zeros(3)


class IndexOfTheHost(TwoDevices):
    """Indices and numbers may be the host's."""

    def forward(self, x):
        return x[torch.tensor([2, 0])] * torch.tensor(2.0)


def test_tensors_of_two_devices_are_refused_by_eager() -> None:
    for verdict, reason in examined(TwoDevices).values():
        assert verdict == "unavailable" and "Expected all tensors to be on the same device" in reason


def test_indices_and_numbers_of_the_host_are_not() -> None:
    assert examined(IndexOfTheHost, Stage.CAPTURE, Stage.RUNTIME) == dict.fromkeys(
        (Stage.CAPTURE, Stage.RUNTIME), ("pass", "")
    )


class ShapeChanged(Micrograph):
    """Sizes and strides of an intermediate change in place."""

    inputs = (Tensor("2 3"),)
    contract = Contract()

    def forward(self, x):
        y = x + 1
        y.transpose_(0, 1)
        return y * 2


class Tangent(Micrograph):
    """Forward-mode differentiation, with a constant that has no tangent."""

    inputs = (Tensor("3"),)
    contract = Contract()

    def forward(self, x):
        return torch.func.jvp(lambda y: y * 2 + x.detach(), (x,), (torch.ones_like(x),))[1]


@pytest.mark.parametrize("micrograph", [ShapeChanged, Tangent])
def test_the_described_gpu_can(micrograph: type[Micrograph]) -> None:
    assert examined(micrograph, Stage.RUNTIME) == {Stage.RUNTIME: ("pass", "")}


class Counts(Micrograph):
    """The program counts its calls."""

    inputs = (Tensor("3"),)
    contract = Contract()

    def forward(self, x):
        calls["made"] += 1
        return x * 2.0

    def play(self, run, x):
        before = calls["made"]
        return run(x), calls["made"] - before, before % 2 + calls["made"] % 2


def test_trying_a_program_leaves_nothing_behind() -> None:
    """It is tried in eager on the described GPU first: a count that this changed would differ from play to play."""
    examined(Counts, Stage.RUNTIME)
    with_probe = calls["made"]
    calls["made"] = 0
    examined(Counts, Stage.RUNTIME)  # known by now: nothing is tried
    assert calls["made"] == with_probe


class CompilesItself(Micrograph):
    """The scenario compiles a function of its own: nothing of that is observed for a described GPU."""

    inputs = (Tensor("3"),)
    contract = Contract(capture=Capture(graphs=1))

    def forward(self, x):
        return x + 1

    def play(self, run, x):
        return run.compile(lambda y: y * 2)(x)


def test_a_scenario_that_cannot_be_played_has_no_verdict() -> None:
    for verdict, reason in examined(CompilesItself).values():
        assert verdict == "unavailable" and "compiles modules ahead of time" in reason
