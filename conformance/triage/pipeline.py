"""From a subject to its stage, its culprit, a smaller graph and a repro."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx

from conformance import backends, expectations
from conformance.backends.base import Case, HasRepro, Triaged
from conformance.examine import Examination
from conformance.judge import Judge, Result, is_wrong
from conformance.record_writer import without_folders
from conformance.repro import Report, issue_text
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Trace
from conformance.triage import graph_repro
from conformance.triage.culprit import Culprit
from conformance.triage.graph_reducer import Reduced, Reducer
from conformance.triage.micrograph_subject import Subject
from conformance.triage.open_examination import Held, Rungs, Unsettled, right_with_nothing_fused, scratch, signature
from conformance.triage.subgraph import CALLS
from conformance.triage.trail import Trail, follow, holds_open

REDUCIBLE = {"wrong_result", "numeric_drift", "crash", "wrong_metadata", "lost_mutation", "lost_alias", "graph_break"}
CODE = (Stage.FUSION, Stage.CODEGEN)
WITH_A_TAIL = 17  # a size that fills a vector of any machine and leaves a tail


@dataclass
class Triage:
    subject: Subject
    results: dict[Stage, Result]
    first: Result | None = None
    culprit: Culprit | None = None
    reduced: Reduced | None = None
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

    def to_json(self) -> dict[str, Any]:
        first, culprit = self.first, self.culprit
        return {
            "subject": self.subject.source,
            "verdict": "found" if first is not None else "right",
            "stage": first.cell.stage.value if first is not None else None,
            "culprit": {"what": culprit.what, "name": culprit.name, "why": culprit.why}
            if culprit is not None
            else None,
            "kind": self.kind if first is not None else "",
            "detail": first.reason if first is not None else "",
            "stages": {stage.value: str(result.verdict) for stage, result in self.results.items()},
            "repro": str(self.repro) if self.repro is not None else None,
            "verified": self.verified,
            "unwritten": self.unwritten or self.unreduced,
            "issue": str(self.issue) if self.issue is not None else None,
            "seconds": {step: round(seconds, 1) for step, seconds in self.seconds.items()},
        }


def triage(
    subject: Subject,
    *,
    out: Path | None = None,
    shrink: bool = True,
    limit: float = 180.0,
    say: Callable[[str], None] = lambda _: None,
) -> Triage:
    """Name the stage, then the culprit, then shrink, then write."""
    case, backend = Case(subject.micrograph, Target.parse(subject.target)), backends.get(subject.backend)
    with scratch(backend) if isinstance(backend, Triaged) else nullcontext():
        search = _Search(subject, backend, case, limit, say)
        search.run(shrink)
        if search.unconfirmed:  # a graph of the compiler is odd, its program is right: look again, at the program first
            search = _Search(subject, backend, case, limit, say, early=False)
            search.run(shrink)
    if out is not None and search.trail is not None and search.found.reduced is not None:
        _write(search.found, search.trail, search.backend, out)
    return search.found


class _Search:
    """The steps of one triage. What a step has found out serves those after it."""

    def __init__(
        self, subject: Subject, backend: Any, case: Case, limit: float, say: Callable[[str], None], early: bool = True
    ) -> None:
        self.subject, self.backend, self.case, self.limit, self.say = subject, backend, case, limit, say
        self.early, self.unconfirmed = early, False
        self.open = holds_open(backend, case.target)
        self.found = Triage(subject, {})
        self.stages = STAGES[: Stage.CACHE.order] if subject.given else STAGES
        self.judge = Judge(expectations.Expectations([], {}))  # a known defect is triaged like any other
        self.held: Held | None = None
        self.trail: Trail | None = None
        self.graph: tuple[fx.GraphModule, tuple[Any, ...]] | str = ""  # what to reduce, or why there is nothing
        self.reducer: Reducer | None = None

    def run(self, shrink: bool) -> None:
        found = self.found
        try:
            with self._timed("stage"):
                self._stage()
            if found.first is None:
                return
            self.say(f"{found.first.cell.stage}: {found.first.reason}")
            with self._timed("culprit"):
                self._culprit()
            self.say(f"culprit: {found.culprit}")
            if shrink:
                found.unreduced = self._unreducible()
            if self.held is not None and (not shrink or found.unreduced):
                self.unconfirmed = not self.held.confirmed()
        finally:
            if self.trail is not None:
                self.trail.close()
        if shrink and self.trail is not None and not found.unreduced and not self.unconfirmed:
            with self._timed("reduce"):
                self._reduce()

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.found.seconds[step] = time.monotonic() - start

    # ------------------------------------------------------------------------------------------- stage

    def _stage(self) -> None:
        reasons = dict(self.backend.unavailable(self.case.target))
        if not self.open or reasons:
            found = results_here(self.subject.micrograph, self.backend, self.case.target, self.stages, self.judge)
        else:
            found = self._held()
        self.found.results, self.found.first = found, next((r for r in found.values() if r.verdict.unexpected), None)

    def _held(self) -> dict[Stage, Result]:
        """One compile for the stage and for what is inside it."""
        held = Held(self.case, self.backend, self.stages, self._wrong, self.early)
        try:
            trace = held.trace()
            if held.first_call:
                self.held, self.trail = held, follow(self.backend, self.case, held)
            if held.undecided is not None and self._fusion(held):
                held.blame_fusion()
        finally:
            if self.trail is None:
                held.close()
        return self.judge.results(trace, self.subject.micrograph, self.stages)

    def _wrong(self, trace: Trace) -> bool:
        return is_wrong(trace, self.subject.micrograph)

    def _fusion(self, held: Held) -> bool:
        """The generated program is wrong: because of what was fused, or because of how it is written? A lowering is wrong by
        itself, and so is a kernel of a single op, or one with an op in it that is wrong alone. Else everything is compiled once
        more with nothing fused."""
        assert held.undecided is not None
        if self.trail is None:
            return held.right_unfused()
        named = self.found.culprit = self.trail.culprit(Stage.CODEGEN, held.found[Stage.CODEGEN].findings[0].kind.value)
        if named is not None and (named.what == "lowering" or (named.what == "kernel" and named.nodes == 1)):
            return False
        fused = self._by_its_ops() if named is not None and named.what == "kernel" else None
        if fused is None:
            fused = held.right_unfused()
        if fused and named is not None and named.what == "kernel":
            named.what = "fusion group"
        return fused

    def _by_its_ops(self) -> bool | None:
        """Is an op wrong alone? Or are two only if they are fused? None: neither."""
        self._prepare()
        if isinstance(self.graph, str):
            return None
        self.reducer = reducer = self._make_reducer(Stage.CODEGEN)
        probe = reducer.probe
        if probe is None:
            return None
        if probe.wrong_alone():
            return False
        return True if probe.answered and probe.wrong_together() else None

    # ----------------------------------------------------------------------------------------- culprit

    def _culprit(self) -> None:
        first, found = self.found.first, self.found
        assert first is not None
        if self.trail is None:
            self.trail = follow(self.backend, self.case)
        if self.trail is not None and found.culprit is None:
            found.culprit = self.trail.culprit(first.cell.stage, found.kind)
        if found.culprit is None:
            found.culprit = _from_finding(found)
        if self.trail is not None:
            self._prepare()

    def _prepare(self) -> None:
        """What the reducer needs of the compile, before others disturb it."""
        if self.graph:
            return
        assert self.trail is not None
        captured = self.trail.captured()
        if len(captured) != 1:
            self.graph = f"{len(captured)} graphs were captured; the reducer takes one"
            return
        inputs = self.trail.inputs()
        if inputs is None:
            self.graph = "the inputs of the captured graph could not be had"
        elif any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            self.graph = "a training graph: its backward is not a part of the captured graph"
        else:
            self.graph = captured[0], inputs

    # ------------------------------------------------------------------------------------------ reduce

    def _unreducible(self) -> str:
        assert self.found.first is not None
        stage, kind = self.found.first.cell.stage, self.found.kind
        if kind not in REDUCIBLE or stage is Stage.CACHE:
            return f"a {kind} of {stage} is a finding about the whole program: the micrograph is the reproducer"
        return self.graph if isinstance(self.graph, str) else ""

    def _reduce(self) -> None:
        found = self.found
        assert found.first is not None and found.culprit is not None
        stage, kind = found.first.cell.stage, found.kind
        reducer = self.reducer or self._make_reducer(stage)
        self._ask(reducer, stage, kind)
        found.reduced = reducer.run(found.culprit.ops)
        self.unconfirmed = reducer.slipped and self.held is not None and self.held.early
        self.say(
            f"{found.reduced.before} nodes → {found.reduced.nodes}, {found.reduced.tries} tries, {found.reduced.seconds:.0f} s"
        )

    def _make_reducer(self, stage: Stage) -> Reducer:
        assert self.trail is not None and not isinstance(self.graph, str)
        code = stage in CODE
        probe = self.trail.probe if code else None
        return Reducer(*self.graph, lambda *_: False, self.limit, probe, small=WITH_A_TAIL if code else 5)

    def _ask(self, reducer: Reducer, stage: Stage, kind: str) -> None:
        """The question that the reducer puts to each smaller graph: the same finding? Where it can be had for less than a whole
        compile and a second one with nothing fused, that is kept for the smallest."""
        kinds = {"wrong_result", "numeric_drift"} if kind in ("wrong_result", "numeric_drift") else {kind}

        def asked(
            look: type[Examination], stages: Collection[Stage]
        ) -> Callable[[fx.GraphModule, tuple[Any, ...]], bool]:
            def holds(smaller: fx.GraphModule, values: tuple[Any, ...]) -> bool:
                got = signature(self.backend, smaller, values, self.subject.target, stage, look)
                return got is not None and got[0] in stages and got[1] in kinds

            return holds

        plain = asked(Examination, [stage])
        cheap = self.open and kind != "crash"
        graphs_tell = kind != "wrong_metadata"  # strides of a graph are looked at only where the program has them too
        if cheap and graphs_tell and stage in (Stage.DECOMPOSITION, Stage.POSTGRAD):
            reducer.holds, reducer.sure = asked(Rungs, [stage]), plain
        elif cheap and stage in CODE:
            fusion = stage is Stage.FUSION
            reducer.holds = asked(Unsettled, CODE)
            probe = reducer.probe
            known = probe is not None and probe.answered and bool(probe.wrong_alone() or probe.wrong_together())
            reducer.sure = (
                None if known else lambda smaller, values: right_with_nothing_fused(smaller, values) == fusion
            )
        else:
            reducer.holds = plain


def _from_finding(found: Triage) -> Culprit:
    assert found.first is not None
    check = found.first.findings[0].check if found.first.findings else ""
    return Culprit("finding", check or str(found.first.verdict), found.first.reason)


# ---------------------------------------------------------------------------------------------- write


def _write(found: Triage, trail: Trail, backend: Any, out: Path) -> None:
    assert found.first is not None and found.reduced is not None and found.culprit is not None
    stage, reduced = found.first.cell.stage, found.reduced
    transform = found.culprit.name if found.culprit.what == "transform" else ""
    entry = backend.repro_entry(stage.value) if isinstance(backend, HasRepro) else None
    if entry is None or ("{transform}" in entry[1] and not transform):
        found.unwritten = f"there is no form of a repro yet for a {found.kind} of {found.subject.backend} at {stage}"
        return
    before, after = (without_folders(text) for text in trail.texts(stage))
    called = {
        str(n.target).replace("<built-in method ", "").split(" of ")[0] for n in reduced.gm.graph.nodes if n.op in CALLS
    }
    report = Report(
        title=f"{found.subject.backend}: {found.kind.replace('_', ' ')} at {stage} ({', '.join(sorted(called))})",
        stage=f"{stage} ({found.subject.backend}, target {found.subject.target})",
        expected="what eager gives",
        got=found.first.findings[0].detail if found.first.findings else found.first.reason,
        versions=backend.versions(),
        culprit=str(found.culprit),
        found=f"Reduced from {reduced.before} nodes to {reduced.nodes} in {reduced.tries} tries.",
        details={"Graph before the stage": before, "Graph after it": after},
    )
    subject = found.subject.micrograph.name().removeprefix("given.").replace(".", "_")
    name = f"{found.subject.backend}_{stage}_{subject}"
    path = out / f"{name}.py"
    graph_repro.write(path, reduced.gm, reduced.inputs, report, found.kind, entry, transform)
    code, said = graph_repro.verify(path)
    if code != 1:
        path.unlink()
        found.unwritten = f"the reduced graph does not fail alone: exit {code} in a fresh process: {said}"
        return
    found.repro, found.issue, found.verified = path, out / f"{name}.md", f"exit 1 in a fresh process: {said}"
    found.issue.write_text(issue_text(report, found.repro), encoding="utf-8")


def stages_line(results: dict[Stage, Result]) -> str:
    return "  ".join(f"{stage} {results[stage].verdict.sign}" for stage in STAGES if stage in results)
