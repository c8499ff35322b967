"""Programs that eager refuses, and scenarios that promise no number of graphs."""

from __future__ import annotations

from typing import Any

import pytest
from faulty_backends import HEALTHY, NullBackend, NullCompiled

from conformance import checks, oracle, scenario
from conformance.contract import Cache, Capture, Contract, Runtime
from conformance.inputs import Tensor
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.trace import Observation
from conformance.verdict import Kind, Verdict

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache

LOOSE = Capture(graphs=None, breaks=None)
UNCACHED = Cache(cacheable=False, why="nothing is compiled")


class Refused(Micrograph):
    """Eager raises."""

    inputs = (Tensor("2"),)
    contract = Contract(capture=LOOSE, runtime=Runtime(raises=True), cache=UNCACHED)

    def forward(self, x: Any) -> Any:
        raise ValueError("not these values")


class Played(Micrograph):
    """Two calls, nothing promised about graphs."""

    inputs = (Tensor("2"),)
    contract = Contract(capture=LOOSE, cache=UNCACHED)

    def forward(self, x: Any) -> Any:
        return x + 1.0

    def play(self, run: Any, *inputs: Any) -> Any:
        return run(*inputs), run(*inputs)


def test_a_compiler_that_raises_as_eager_does_is_right() -> None:
    results = results_here(Refused, NullBackend(), CPU)
    assert {result.verdict for result in results.values()} == {Verdict.PASS}


def test_a_compiler_that_does_not_raise_has_lost_the_validation() -> None:
    results = results_here(Refused, NullBackend(lie=lambda compiled, inputs: inputs[0] * 2.0), CPU)
    assert results[Stage.RUNTIME].verdict is Verdict.FAIL
    assert {finding.kind for finding in results[Stage.RUNTIME].findings} == {Kind.LOST_VALIDATION}


def test_stages_after_the_one_that_refuses_cannot_be_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NullCompiled, "blame", lambda self, error: Stage.DECOMPOSITION)
    facts = {Stage.CODEGEN: {"programs": 0}}  # which would be a fallback
    results = results_here(Refused, NullBackend(facts=facts), CPU)
    refused = {stage for stage in STAGES if results[stage].verdict is Verdict.UNAVAILABLE}
    assert refused == {Stage.POSTGRAD, Stage.FUSION, Stage.CODEGEN}
    assert "in decomposition, as eager does" in results[Stage.CODEGEN].reason
    assert results[Stage.RUNTIME].verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("stage", "facts"),
    [
        (Stage.CAPTURE, {"graphs": 3, "breaks": 2}),
        (Stage.CACHE, {"first": {"fx_hit": 1}}),
        (Stage.CACHE, {"first": {}}),
    ],
)
def test_a_scenario_may_leave_the_number_of_graphs_open(stage: Stage, facts: dict[str, Any]) -> None:
    seen = Observation({**HEALTHY[stage], **facts})
    assert not checks.findings(stage, checks.Seen(seen, Played, "null", "cpu"))

    class Strict(Played):
        contract = Contract()

    assert checks.findings(stage, checks.Seen(seen, Strict, "null", "cpu"))


def test_what_comes_from_another_process_is_not_read_in_double() -> None:
    """Tensors that came back through the fp64 mode were read as other numbers: every difference was within eager's own error."""
    micrograph = load()["upstream.cache.op_backward_edited"]
    reference = oracle.played(micrograph.build, micrograph.example, scenario.eager, random=False)
    assert [value.tolist() for value in reference.eager.outputs] == [[3.0] * 3, [5.0] * 3]
    assert reference.exact is None
