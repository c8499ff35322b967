"""COD005: a kernel whose result depends on the order in which the programs of its grid run is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance import backends
from conformance.contract import Contract
from conformance.headless import races
from conformance.headless.interpret import IN_ORDER, REVERSED, SHUFFLED, programs
from conformance.inputs import Tensor
from conformance.judge import Result
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import Target
from conformance.verdict import Kind

pytestmark = pytest.mark.own_process  # it forks, or compiles with a patched compiler


class Rows(Micrograph):
    """Enough elements for several programs of a grid."""

    dims = {"m": 256}
    inputs = (Tensor("m 64"),)
    contract = Contract()

    def forward(self, x):
        return torch.relu(x) + 1


def examined() -> dict[Stage, Result]:
    return results_here(Rows, backends.get("inductor"), Target("sm_90"), [Stage.CODEGEN, Stage.RUNTIME])


def test_a_kernel_without_a_race_passes_and_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []
    found = races.found
    monkeypatch.setattr(
        races, "found", lambda launch, *rest: found(lambda order: (launches.append(order), launch(order))[1], *rest)
    )
    assert {str(result.verdict) for result in examined().values()} == {"pass"}
    assert launches == [IN_ORDER, REVERSED, SHUFFLED], "once, at the first launch"


def test_programs_that_write_the_same_place_are_a_finding(rewrite_kernels: Callable[[str, str], None]) -> None:
    """As if the code generator had lost the offset of the program: every program writes to the first block."""
    rewrite_kernels(r"(tl\.store\(out_ptr0 \+ \()(\w+)(\))", r"\1\2 % XBLOCK\3")
    found = [one for one in examined()[Stage.CODEGEN].findings if one.check == "COD005"]  # the answer is wrong as well
    assert (
        found and found[0].kind is Kind.BAD_CODE and "out_ptr0 depends on the order of the programs" in found[0].detail
    )


def test_orders_are_orders_of_the_same_programs() -> None:
    usual = programs((3, 2, 1), IN_ORDER)
    assert len(usual) == 6 and programs((3, 2, 1), REVERSED) == usual[::-1]
    shuffled = programs((3, 2, 1), SHUFFLED)
    assert shuffled != usual and sorted(shuffled) == usual == sorted(programs((3, 2, 1), SHUFFLED))


TINY = 2.0**-24  # two of them are one unit of 1.0 in the last place; one alone is rounded away


@pytest.mark.parametrize(("atomic", "found"), [(False, True), (True, False)])
def test_sums_of_atomics_may_be_rounded_otherwise(atomic: bool, found: bool) -> None:
    total = torch.zeros(1)

    def launch(order: str) -> None:
        for value in {IN_ORDER: (1.0, TINY, TINY), REVERSED: (TINY, TINY, 1.0), SHUFFLED: (TINY, 1.0, TINY)}[order]:
            total.add_(value)

    assert bool(races.found(launch, {"out_ptr0": total}, atomic)) is found
    assert total.item() == 1.0, "the memory is left as the usual order leaves it"


def test_atomics_of_another_value_are_a_finding() -> None:
    total = torch.zeros(1)

    def launch(order: str) -> None:
        total.copy_(total * 2 + 1 if order == IN_ORDER else total + 1)

    total.fill_(5.0)
    assert races.found(launch, {"out_ptr0": total}, atomic=True)
