"""From a subject to its stage, its culprit, a smaller graph and a repro."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance import backends, expectations
from conformance.backends.base import Case
from conformance.record import without_folders
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.triage import reduce, repro
from conformance.triage.culprit import Culprit
from conformance.triage.doors import door
from conformance.triage.subject import Subject
from conformance.triage.trail import Trail, follow
from conformance.workbench import Result, Workbench

REDUCIBLE = {"wrong_result", "numeric_drift", "crash", "wrong_metadata", "lost_mutation", "lost_alias", "graph_break"}


@dataclass
class Triage:
    subject: Subject
    results: dict[Stage, Result]
    first: Result | None = None
    culprit: Culprit | None = None
    reduced: reduce.Reduced | None = None
    unreduced: str = ""  # why it was not reduced
    repro: Path | None = None
    issue: Path | None = None
    unwritten: str = ""  # why there is no repro
    verified: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        assert self.first is not None
        return self.first.findings[0].kind.value if self.first.findings else str(self.first.verdict)


def triage(
    subject: Subject, *, out: Path | None = None, shrink: bool = True, limit: float = 180.0, say: Callable[[str], None] = lambda _: None
) -> Triage:
    """Name the stage, then the culprit, then shrink, then write."""
    backend, target = backends.get(subject.backend), Target.parse(subject.target)
    start = time.monotonic()
    workbench = Workbench(expectations.Expectations([], {}))  # a known defect is triaged like any other
    results = workbench.examine(subject.micrograph, backend, target, STAGES[: Stage.CACHE.order] if subject.given else STAGES)
    found = Triage(subject, results, next((r for r in results.values() if r.verdict.unexpected), None))
    found.seconds["stage"] = time.monotonic() - start
    if found.first is None:
        return found
    say(f"{found.first.cell.stage}: {found.first.reason}")
    start = time.monotonic()
    trail = follow(backend, Case(subject.micrograph, target))
    if trail is not None:
        found.culprit = trail.culprit(found.first.cell.stage, found.kind)
    found.seconds["culprit"] = time.monotonic() - start
    if found.culprit is None:
        found.culprit = _from_finding(found)
    say(f"culprit: {found.culprit}")
    if shrink and trail is not None:
        start = time.monotonic()
        _reduce(found, trail, backend, limit, say)
        found.seconds["reduce"] = time.monotonic() - start
    if out is not None and trail is not None and found.reduced is not None:
        _write(found, trail, backend, out)
    return found


def _from_finding(found: Triage) -> Culprit:
    assert found.first is not None
    check = found.first.findings[0].check if found.first.findings else ""
    return Culprit("finding", check or str(found.first.verdict), found.first.reason)


# --------------------------------------------------------------------------------------------- reduce


def _reduce(found: Triage, trail: Trail, backend: Any, limit: float, say: Callable[[str], None]) -> None:
    assert found.first is not None and found.culprit is not None
    stage, kind = found.first.cell.stage, found.kind
    if kind not in REDUCIBLE or stage is Stage.CACHE:
        found.unreduced = f"a {kind} of {stage} is a finding about the whole program: the micrograph is the reproducer"
        return
    captured = trail.captured()
    if len(captured) != 1:
        found.unreduced = f"{len(captured)} graphs were captured; the reducer takes one"
        return
    inputs = trail.inputs()
    if inputs is None:
        found.unreduced = "the inputs of the captured graph could not be had"
        return
    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
        found.unreduced = "a training graph: its backward is not a part of the captured graph"
        return
    target = found.subject.target

    def holds(smaller: Any, values: tuple[Any, ...]) -> bool:
        got = reduce.signature(backend, smaller, values, target, stage)
        return got is not None and got[0] == stage and (got[1] == kind or {got[1], kind} <= {"wrong_result", "numeric_drift"})

    reducer = reduce.Reducer(captured[0], inputs, holds, limit, trail.probe)
    found.reduced = reducer.run(found.culprit.ops)
    say(f"{found.reduced.before} nodes → {found.reduced.nodes}, {found.reduced.tries} tries, {found.reduced.seconds:.0f} s")


# ---------------------------------------------------------------------------------------------- write


def _write(found: Triage, trail: Trail, backend: Any, out: Path) -> None:
    assert found.first is not None and found.reduced is not None and found.culprit is not None
    transform = found.culprit.name if found.culprit.what == "transform" else ""
    if door(found.subject.backend, found.first.cell.stage.value) is None or (found.subject.backend == "autodeploy" and not transform):
        found.unwritten = f"there is no form of a repro yet for a {found.kind} of {found.subject.backend} at {found.first.cell.stage}"
        return
    before, after = (without_folders(text) for text in trail.texts(found.first.cell.stage))
    ops = ", ".join(
        sorted(
            {str(n.target).replace("<built-in method ", "").split(" of ")[0] for n in found.reduced.gm.graph.nodes if n.op in reduce.CALLS}
        )
    )
    report = repro.Report(
        title=f"{found.subject.backend}: {found.kind.replace('_', ' ')} at {found.first.cell.stage} ({ops})",
        stage=found.first.cell.stage.value,
        kind=found.kind,
        detail=found.first.findings[0].detail if found.first.findings else found.first.reason,
        culprit=str(found.culprit),
        backend=found.subject.backend,
        target=found.subject.target,
        versions=backend.versions(),
        graph_before=before,
        graph_after=after,
        transform=transform,
    )
    subject = found.subject.micrograph.name().removeprefix("given.").replace(".", "_")
    name = f"{found.subject.backend}_{found.first.cell.stage}_{subject}"
    found.repro, found.issue = out / f"{name}.py", out / f"{name}.md"
    repro.write(found.repro, found.reduced.gm, found.reduced.inputs, report)
    code, said = repro.verify(found.repro)
    found.verified = f"exit {code} in a fresh process: {said}"
    found.issue.write_text(repro.issue_text(report, found.repro, (found.reduced.before, found.reduced.nodes)), encoding="utf-8")


def stages_line(results: dict[Stage, Result]) -> str:
    return "  ".join(f"{stage} {results[stage].verdict.sign}" for stage in STAGES if stage in results)
