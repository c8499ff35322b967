"""The verdict policy, row by row; and what must never be green."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.expectations import Expectation, Expectations
from conformance.judge import POLICY, UNCOMPILED, Judge, verdict_of
from conformance.library import load
from conformance.stage import STAGES, Stage
from conformance.trace import Observation, Trace
from conformance.verdict import Finding, Kind, Verdict

LIBRARY = load()
MICROGRAPH = LIBRARY["pointwise.chain"]
CRASH = Finding(Kind.CRASH, "LAD001", "it crashed")
LATE = Finding(Kind.TIMEOUT, "LAD001", "it took too long")
WRONG = Finding(Kind.WRONG_RESULT, "LAD001", "it is wrong")

# What was observed, and the verdict; in the order of the policy's rows, each row at least once.
ROWS: list[tuple[str, Observation, list[Finding], Verdict]] = [
    ("unsupported stays so", Observation(verdict=Verdict.UNSUPPORTED, reason="no"), [WRONG], Verdict.UNSUPPORTED),
    ("a crash among other findings", Observation(), [WRONG, CRASH], Verdict.ERROR),
    ("a timeout", Observation(), [WRONG, LATE], Verdict.TIMEOUT),
    ("something is wrong", Observation(), [WRONG], Verdict.FAIL),
    (
        "a fallback with a wrong answer",
        Observation(verdict=Verdict.FALLBACK, reason="fell back"),
        [WRONG],
        Verdict.FAIL,
    ),
    ("uncompiled and wrong", Observation({"programs": 0}), [WRONG], Verdict.FAIL),
    (
        "a fallback with the right answer",
        Observation(verdict=Verdict.FALLBACK, reason="fell back"),
        [],
        Verdict.FALLBACK,
    ),
    ("uncompiled and right", Observation({"programs": 0}), [], Verdict.FALLBACK),
    ("nothing is wrong", Observation({"programs": 1}), [], Verdict.PASS),
]


@pytest.mark.parametrize(("seen", "findings", "verdict"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_the_first_row_that_applies_decides(seen: Observation, findings: list[Finding], verdict: Verdict) -> None:
    assert verdict_of(seen, findings)[0] is verdict


def test_every_row_of_the_policy_decides_something() -> None:
    deciding = {
        next(i for i, rule in enumerate(POLICY) if rule.applies(seen, findings)) for _, seen, findings, _ in ROWS
    }
    assert deciding == {*range(len(POLICY))}


def test_a_verdict_has_a_reason() -> None:
    assert verdict_of(Observation({"programs": 0}), [])[1] == UNCOMPILED
    assert verdict_of(Observation({"programs": 0, "nothing_left": True}), [])[0] is Verdict.PASS
    assert verdict_of(Observation(), [WRONG, LATE])[1] == "it is wrong; it took too long"


# ------------------------------------------------------------------------------------------------------ blocks


def trace(**observations: Observation) -> Trace:
    return Trace("pointwise.chain", "null", "cpu", STAGES, {Stage(name): seen for name, seen in observations.items()})


def judged(found: Trace, *stages: str, expected: list[Expectation] | None = None) -> dict[str, Any]:
    results = Judge(Expectations(expected or [], {})).results(
        found, MICROGRAPH, [Stage(name) for name in stages] or STAGES
    )
    return {stage.value: result for stage, result in results.items()}


BROKEN = {"postgrad": Observation(findings=[CRASH])}


def test_a_block_whose_cause_is_reported_is_not_unexpected() -> None:
    results = judged(trace(**BROKEN), "postgrad", "codegen")
    assert (results["postgrad"].verdict, results["postgrad"].unexpected) == (Verdict.ERROR, True)
    assert (results["codegen"].verdict, results["codegen"].unexpected) == (Verdict.BLOCKED, False)
    assert str(results["codegen"].cause) == "postgrad/null/cpu/pointwise.chain"


def test_a_block_whose_cause_nobody_reports_is_unexpected_and_names_it() -> None:
    results = judged(trace(**BROKEN), "codegen")
    assert (results["codegen"].verdict, results["codegen"].unexpected) == (Verdict.BLOCKED, True)
    assert (
        results["codegen"].findings[0].check == "BLK001"
        and "postgrad/null/cpu" in results["codegen"].findings[0].detail
    )
    assert results["codegen"].to_json()["unexpected"] is True


def test_a_block_by_an_expected_failure_is_expected() -> None:
    entry = Expectation("postgrad/null/*/*", "crash", "", "", "url", "known", "test")
    results = judged(trace(**BROKEN), "codegen", expected=[entry])
    assert (results["codegen"].verdict, results["codegen"].unexpected) == (Verdict.BLOCKED, False)


def test_a_stage_that_is_unsupported_makes_later_ones_unsupported() -> None:
    results = judged(trace(capture=Observation(verdict=Verdict.UNSUPPORTED, reason="no gradients")), "codegen")
    assert results["codegen"].verdict is Verdict.UNSUPPORTED and not results["codegen"].unexpected


def test_a_process_that_died_is_the_verdict_of_its_stage_and_blocks_the_others() -> None:
    judge = Judge(Expectations([], {}))
    at = Cell(Stage.CODEGEN, "null", "cpu", "pointwise.chain")
    results = judge.died(STAGES, at, MICROGRAPH, False, "the process was ended by SIGSEGV")
    assert results[Stage.CODEGEN].verdict is Verdict.ERROR and "SIGSEGV" in results[Stage.CODEGEN].reason
    assert {results[stage].verdict for stage in STAGES if stage is not Stage.CODEGEN} == {Verdict.BLOCKED}
    alone = judge.died([Stage.CACHE], at, MICROGRAPH, True, "no end after 3 s")
    assert alone[Stage.CACHE].verdict is Verdict.BLOCKED and alone[Stage.CACHE].unexpected


# ---------------------------------------------------------------------------------------------------- baseline


def recorded(folder: Path, verdict: str) -> Baseline:
    env = {"torch": "2.15.0", "python": platform.python_version(), "machine": "x86_64", "cpu": "AVX2", "backends": {}}
    cell = "fusion/null/cpu/pointwise.chain"
    line = {"cell": cell, "verdict": verdict, "observation": {}, "micrograph": MICROGRAPH.digest()}
    (folder / "then.jsonl").write_text(f"{json.dumps({'schema': 'conformance/1', 'env': env})}\n{json.dumps(line)}\n")
    return Baseline(env, folder)


@pytest.mark.parametrize(("then", "unexpected"), [("pass", True), ("xfail", True), ("unavailable", False)])
def test_what_can_no_longer_be_observed_is_unexpected(tmp_path: Path, then: str, unexpected: bool) -> None:
    found = trace()
    found.unavailable[Stage.FUSION] = "torch 2.15.0 has no Scheduler.codegen"
    result = Judge(Expectations([], {}), recorded(tmp_path, then)).results(found, MICROGRAPH, [Stage.FUSION])[
        Stage.FUSION
    ]
    assert (result.verdict, result.unexpected) == (Verdict.UNAVAILABLE, unexpected)
    assert [finding.check for finding in result.findings] == (["BAS002"] if unexpected else [])
