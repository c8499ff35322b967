"""OpenVINO through the suite: found by its entry point, real graphs and models at every stage, defects where they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("openvino")

from conformance import Contract, Micrograph, Tensor, backends, expectations
from conformance.backends.base import Case, HasExpectations, HasRepro, Jit, Released
from conformance.examine import examine
from conformance.judge import Judge
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.verdict import Verdict


class Chain(Micrograph):
    """Two ops: a partition."""

    dims = {"n": 12}
    inputs = (Tensor("n"),)
    contract = Contract()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1


class Alone(Micrograph):
    """One op: no partition."""

    dims = {"n": 12}
    inputs = (Tensor("n"),)
    contract = Contract()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos()


@pytest.fixture(scope="module")
def chain() -> Any:
    return examine(Case(Chain, CPU), backends.get("openvino"), STAGES)


def test_it_is_found_by_its_entry_point_and_says_what_it_can() -> None:
    backend = backends.get("openvino")
    assert "openvino" not in backends.BUILTIN and type(backend).__module__.startswith("conformance_openvino")
    assert all(isinstance(backend, protocol) for protocol in (Jit, HasRepro, HasExpectations, Released))
    assert any(entry.cell.split("/")[1] == "openvino" for entry in expectations.load().entries)
    assert not backend.unavailable(CPU)


def test_every_stage_shows_what_openvino_made(chain: Any) -> None:
    assert chain[Stage.CAPTURE].facts["graphs"] == 1
    assert chain[Stage.DECOMPOSITION].facts["ops"] == {"aten.add.Tensor": 1, "aten.sin.default": 1}
    assert chain[Stage.POSTGRAD].facts["ops"] == chain[Stage.DECOMPOSITION].facts["ops"]
    assert chain[Stage.FUSION].facts["engines"] == 1 and not chain[Stage.FUSION].facts["ops_in_torch"]
    codegen = chain[Stage.CODEGEN].facts
    assert (
        codegen["programs"] == 1
        and {"Sin", "Add", "Parameter", "Result"} <= {*codegen["model_ops"]}
        and codegen["layers"]
    )


def test_outputs_that_the_next_call_overwrites_are_found(chain: Any) -> None:
    results = Judge(expectations.Expectations([], {})).results(chain, Chain)
    assert [results[stage].verdict for stage in STAGES[: Stage.RUNTIME.order]] == [Verdict.PASS] * 5
    assert {finding.kind.value for finding in results[Stage.RUNTIME].findings} == {"stale_output"}


def test_what_torch_computes_is_a_fallback() -> None:
    trace = examine(Case(Alone, CPU), backends.get("openvino"), [Stage.FUSION])
    seen = trace[Stage.FUSION]
    assert seen.verdict is Verdict.FALLBACK and "aten.cos.default" in seen.reason


@pytest.mark.parametrize("key", ["compile_graph", "partition", "execute", "compile_model"])
def test_a_name_that_is_gone_takes_its_stages_with_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance_openvino.seam import seam

    monkeypatch.setattr(seam, "locate", _gone(seam.locate, key, seam.gone(key)))
    assert {*backends.get("openvino").unavailable(CPU)} == {*seam.names[key].stages}


def _gone(locate: Any, gone: str, reason: str) -> Any:
    from conformance.seam import MissingName

    def find(key: str) -> Any:
        if key == gone:
            raise MissingName(reason)
        return locate(key)

    return find
