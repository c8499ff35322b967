"""Constants of a graph are on the described GPU from the start, as on a machine that has it: no copy to the device is
traced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance import backends
from conformance.contract import Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import Target

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache


class Few(Micrograph):
    """A constant of a few elements: Inductor writes it into the kernel."""

    dims = {"m": 4}
    inputs = (Tensor("m 3"),)
    contract = Contract()

    def forward(self, x):
        return x * torch.tensor([0.5, 0.25, 2.0], device=x.device) + 1


class Many(Micrograph):
    """A constant that is an input of the kernel, and is saved with the program."""

    dims = {"m": 4}
    inputs = (Tensor("m 12"),)
    contract = Contract()

    def forward(self, x):
        return x * torch.tensor([0.5 * i for i in range(12)], device=x.device) + 1


class One(Micrograph):
    """A constant without dims, and what is computed from it alone."""

    dims = {"m": 4}
    inputs = (Tensor("m 3"),)
    contract = Contract()

    def forward(self, x):
        c = torch.tensor(3.0, device=x.device)
        return x * c + (c + 1) + x.new_tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("micrograph", [Few, Many, One])
def test_a_constant_is_made_on_the_device(micrograph: type[Micrograph]) -> None:
    results = results_here(micrograph, backends.get("inductor"), Target("sm_90"))
    assert {stage: str(result.verdict) for stage, result in results.items()} == dict.fromkeys(STAGES, "pass")
    assert not any(
        "_to_copy" in op or "device_put" in op for op in results[Stage.DECOMPOSITION].observation.facts["ops"]
    )
    (kernel,) = results[Stage.CODEGEN].observation.facts["kernels"]
    assert "lift_fresh" in kernel and "_to_copy" not in kernel, "the name that an H200 gives it"


class Moved(Micrograph):
    """A tensor of the host's that the program itself moves: that copy is the program's, and stays."""

    dims = {"m": 4}
    inputs = (Tensor("m 3"),)
    contract = Contract()

    def forward(self, x):
        return x + torch.arange(3, device="cpu").to(x.device)


def test_a_copy_that_the_program_makes_is_kept() -> None:
    results = results_here(Moved, backends.get("inductor"), Target("sm_90"), [Stage.DECOMPOSITION, Stage.RUNTIME])
    assert {str(result.verdict) for result in results.values()} == {"pass"}
    assert any("copy" in op or "device_put" in op for op in results[Stage.DECOMPOSITION].observation.facts["ops"])


@pytest.mark.parametrize(
    "make", [lambda: torch.tensor([1, 2, 3], device="cuda"), lambda: torch.zeros(3, device="cuda")]
)
def test_a_tensor_of_the_device_is_printed(make: Callable[[], torch.Tensor]) -> None:
    """Compilers write constants into their logs."""
    from conformance.headless.program import session

    with session(Target("sm_90")):
        assert "tensor([" in repr(make())
