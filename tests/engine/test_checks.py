"""Every check can fail: each fires on some row, reads facts that some backend gives, and judges a field that some micrograph sets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_backends import NullBackend

from conformance import checks, paths, record
from conformance.checks.registry import declare
from conformance.contract import Codegen, Contract, Decomposition, Fusion, PostGrad, Runtime
from conformance.inputs import Tensor
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.trace import Observation
from conformance.verdict import Kind, Verdict

pytestmark = pytest.mark.own_process  # what earlier tests compiled is in no cache

LIBRARY = load()


class Strict(Micrograph):
    """A micrograph whose contract says something of every stage."""

    inputs = (Tensor("4"),)
    contract = Contract(
        decomposition=Decomposition(keeps=("aten.mm",), absent=("aten.gelu",)),
        postgrad=PostGrad(matches={"attention": 1}),
        fusion=Fusion(kernels=1, apart=1, library=1, temporaries=1, bytes_moved=1000),
        codegen=Codegen(instructions=("mma",), avoids=("double",)),
        runtime=Runtime(mutates=(0,), aliases={0: 0}),
    )

    def forward(self, x: Any) -> Any:
        return x


# The check, the facts (and texts) on which it fires, and what it calls them.
ROWS: list[tuple[str, dict[str, Any], Kind]] = [
    ("CAP001", {"breaks": 1, "graphs": 2, "break_reasons": ["print"]}, Kind.GRAPH_BREAK),
    ("CAP002", {"recompiles": {"n": 2}}, Kind.EXTRA_RECOMPILE),
    ("CAP002", {"recompiles": {"n": 0}}, Kind.MISSED_RECOMPILE),
    ("CAP003", {"guarded": {"input 0 is float64": False}}, Kind.MISSED_RECOMPILE),
    ("CAP004", {"stale": ["n = 9: output 0"]}, Kind.MISSED_RECOMPILE),
    ("CAP005", {"recompiled_at": {"the third call": 1}}, Kind.EXTRA_RECOMPILE),
    ("DEC001", {"composite": ["aten.gelu"]}, Kind.UNDECOMPOSED),
    ("DEC002", {"writes": ["aten.add_.Tensor"]}, Kind.UNDECOMPOSED),
    ("DEC003", {"written_inputs": 0}, Kind.LOST_MUTATION),
    ("DEC004", {"ops": {"aten.gelu.default": 1}}, Kind.UNDECOMPOSED),
    ("DEC005", {"without_metadata": 1}, Kind.METADATA_LOSS),
    ("DEC006", {"decomposable": ["aten.silu.default"]}, Kind.UNDECOMPOSED),
    ("PGR001", {"matches": {"attention": 0}}, Kind.MATCH_LOSS),
    ("PGR001", {"matches": {"attention": 2}}, Kind.OVERFUSED),
    ("PGR001", {"rewritten": {"attention": 0}}, Kind.MATCH_LOSS),
    ("PGR002", {"without_metadata": 2}, Kind.METADATA_LOSS),
    ("PGR003", {"written_inputs_before": 1, "written_inputs": 0}, Kind.LOST_MUTATION),
    ("FUS001", {"kernels": 2}, Kind.UNFUSED),
    ("FUS002", {"kernels": 0}, Kind.OVERFUSED),
    ("FUS003", {"library": []}, Kind.OVERFUSED),
    ("FUS004", {"temporaries": 9}, Kind.UNFUSED),
    ("FUS004", {"bytes_moved": 10**9}, Kind.UNFUSED),
    ("FUS003", {"library": ["mm", "mm"]}, Kind.UNFUSED),
    ("COD002", {"texts": {"kernel": "double x;"}}, Kind.BAD_CODE),
    ("COD003", {"instructions": ["ld.global"]}, Kind.BAD_CODE),
    ("COD004", {"kernels": {"k": {"error": "ptxas"}}}, Kind.BAD_CODE),
    ("RUN001", {"overwritten": ["the first call's output 0"]}, Kind.STALE_OUTPUT),
    ("RUN004", {"mutates": []}, Kind.LOST_MUTATION),
    ("RUN004", {"mutates": [0], "shares": []}, Kind.LOST_ALIAS),
    ("RUN005", {"recordings": 0}, Kind.REPLAY_MISMATCH),
    ("RUN005", {"grew_by": 8}, Kind.STALE_OUTPUT),
    ("RUN007", {"wrong_draws": ["output 0: equal seeds give other numbers"]}, Kind.WRONG_RESULT),
    ("RUN006", {"silently_overwritten": ["output 0"]}, Kind.STALE_OUTPUT),
    ("CCH001", {"first": {"fx_hit": 1}}, Kind.CACHE_MISS),
    ("CCH002", {"again": {"fx_miss": 1}}, Kind.CACHE_MISS),
    ("CCH003", {"changed_config": {"fx_hit": 1}}, Kind.STALE_CACHE),
    ("CCH004", {"fresh_process": {}}, Kind.CACHE_MISS),
    ("CCH005", {"differs": {"again": "output 0"}}, Kind.STALE_CACHE),
    ("CCH006", {"cubins": 0}, Kind.CACHE_MISS),
]
# IDs that are found while measuring: the test that makes each of them fire.
MEASURED = {
    **{f"OPS00{number}": "tests/ops/test_examination.py" for number in (1, 2, 3, 4)},
    "LAD001": "tests/engine/test_faulty_backends.py",
    "BAS001": "tests/engine/test_baseline.py",
    "BAS002": "tests/engine/test_judge.py",
    "BLK001": "tests/engine/test_judge.py",
    "CAP006": "tests/engine/test_variants.py",
    "COD005": "tests/headless/test_races.py",
    "RUN008": "tests/engine/test_replay.py",
    "FUZ001": "tests/fuzz/test_planted.py",
    "AD001": "tests/autodeploy/test_backend.py",
    "AD002": "tests/autodeploy/test_backend.py",
    "AD003": "tests/autodeploy/test_backend.py",
    "AD004": "tests/autodeploy/test_backend.py",
    "AD005": "tests/autodeploy/test_backend.py",
    "AD006": "tests/autodeploy/test_backend.py",
    "AD007": "tests/autodeploy/test_recording.py",
    "TRT001": "tests/torch_tensorrt/test_findings.py",
    "TRT002": "tests/torch_tensorrt/test_findings.py",
    "TRT003": "tests/torch_tensorrt/test_findings.py",
    "TRT004": "tests/torch_tensorrt/test_findings.py",
    "TRT005": "tests/torch_tensorrt/test_findings.py",
    "TRT006": "tests/torch_tensorrt/test_findings.py",
    "TRT007": "tests/torch_tensorrt/test_findings.py",
    "TRT008": "tests/torch_tensorrt/test_findings.py",
    "TRT009": "tests/torch_tensorrt/test_findings.py",
    "TRT010": "tests/torch_tensorrt/test_findings.py",
    "TRT011": "tests/torch_tensorrt/test_findings.py",
}


class Reads(dict[str, Any]):
    """Facts that remember what was asked of them."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(facts)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


def observed(facts: dict[str, Any]) -> checks.Seen:
    """A micrograph that the row's facts are about: its own contract for named dims, the strict one for all else."""
    micrograph = LIBRARY["pointwise.chain"] if "recompiles" in facts else Strict
    texts = facts.get("texts", {})
    return checks.Seen(
        Observation(Reads({k: v for k, v in facts.items() if k != "texts"}), texts), micrograph, "null", "cpu"
    )


@pytest.mark.parametrize(
    ("id", "facts", "kind"), [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(ROWS)]
)
def test_a_check_fires_on_its_row(id: str, facts: dict[str, Any], kind: Kind) -> None:
    found = list(checks.REGISTRY[id](observed(facts)))
    assert kind in {finding.kind for finding in found} and {finding.check for finding in found} == {id}


def test_every_check_has_a_row_or_a_test_that_makes_it_fire() -> None:
    judging = {check.id for check in checks.all_checks() if check.judge}
    assert judging == {row[0] for row in ROWS}
    assert {check.id for check in checks.all_checks() if not check.judge} == {*MEASURED}
    root = paths.checkout()
    assert root is not None
    for id, file in MEASURED.items():
        assert id in (root / file).read_text(), f"{file} does not mention {id}"


def test_every_fact_that_a_check_reads_is_given_by_some_backend() -> None:
    read: dict[str, set[str]] = {}
    for id, facts, _ in ROWS:
        view = observed(facts)
        list(checks.REGISTRY[id](view))
        stage = checks.REGISTRY[id].stage
        assert stage is not None
        read.setdefault(stage.value, set()).update(view.facts.asked)  # type: ignore[attr-defined]
    given: dict[str, set[str]] = {stage.value: set() for stage in STAGES}
    for file in [*paths.reports().glob("*.jsonl"), *paths.reports().glob("archive/*.jsonl")]:
        for line in record.read(file).cells.values():
            given[line["cell"].split("/")[0]] |= {*line.get("observation", {})}
    only_when_wrong = {"recompiled_at"}  # given where a call compiled again that should not have
    assert {
        stage: missing for stage, names in read.items() if (missing := names - given[stage] - only_when_wrong)
    } == {}


def contract_fields() -> Iterator[tuple[str, str]]:
    for part in dataclasses.fields(Contract):
        for field in dataclasses.fields(type(getattr(Contract(), part.name))):
            yield part.name, field.name


@pytest.mark.parametrize(("part", "name"), list(contract_fields()))
def test_every_field_of_a_contract_is_set_by_some_micrograph(part: str, name: str) -> None:
    usual = getattr(getattr(Contract(), part), name)
    assert any(getattr(getattr(cls.contract, part), name) != usual for cls in LIBRARY.values())


def test_an_id_stands_for_one_thing() -> None:
    with pytest.raises(ValueError, match="FUS001 is taken"):
        declare("FUS001", Stage.FUSION, "something else")


def test_findings_carry_registered_ids_only() -> None:
    """Every ID that stands in the engine's sources is in the registry."""
    named = {
        id for file in paths.PACKAGE.rglob("*.py") for id in re.findall(r'"([A-Z]{2,3}\d{3})"', Path(file).read_text())
    }
    assert named <= {*checks.REGISTRY}


STAGE_ROWS: list[tuple[Stage, dict[str, Any], Kind | None, Verdict]] = [
    (Stage.CAPTURE, {"recompiles": {"n": 2}}, Kind.EXTRA_RECOMPILE, Verdict.FAIL),
    (Stage.DECOMPOSITION, {"composite": ["aten.gelu"]}, Kind.UNDECOMPOSED, Verdict.FAIL),
    (Stage.POSTGRAD, {"without_metadata": 2}, Kind.METADATA_LOSS, Verdict.FAIL),
    (Stage.FUSION, {"kernels": 9}, Kind.UNFUSED, Verdict.FAIL),
    (Stage.CODEGEN, {"programs": 0}, None, Verdict.FALLBACK),
    (Stage.CACHE, {"again": {"fx_miss": 1}}, Kind.CACHE_MISS, Verdict.FAIL),
]


@pytest.mark.parametrize(
    ("stage", "facts", "kind", "verdict"), [pytest.param(*row, id=row[0].value) for row in STAGE_ROWS]
)
def test_what_a_stage_shows_is_judged_and_later_stages_are_blocked(
    stage: Stage, facts: dict[str, Any], kind: Kind | None, verdict: Verdict
) -> None:
    class Recaptured(NullBackend):
        def compile(self, case: Any) -> Any:
            compiled = super().compile(case)
            if stage is Stage.CAPTURE:
                compiled.recapture = lambda: facts
            return compiled

    results = results_here(LIBRARY["pointwise.chain"], Recaptured(facts={stage: facts}), CPU)
    bad = next(result for result in results.values() if result.verdict is not Verdict.PASS)
    assert (bad.cell.stage, bad.verdict, bad.findings[0].kind if bad.findings else None) == (stage, verdict, kind)
    assert all(result.verdict is Verdict.BLOCKED for later, result in results.items() if later.order > stage.order)
