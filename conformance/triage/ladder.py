"""From a subject to its stage, its culprit, a smaller graph and a repro."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance import backends, expectations, oracle
from conformance.backends.base import Case
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.triage import culprit as inside
from conformance.triage import reduce, repro
from conformance.triage.culprit import Culprit, Evidence
from conformance.triage.subject import Subject
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
    results = workbench.examine(subject.micrograph, backend, target)
    found = Triage(subject, results, next((r for r in results.values() if r.verdict.unexpected), None))
    found.seconds["stage"] = time.monotonic() - start
    if found.first is None:
        return found
    say(f"{found.first.cell.stage}: {found.first.reason}")
    compiled = None
    start = time.monotonic()
    if subject.backend == "inductor":
        evidence = Evidence()
        compiled = _compile_again(subject, backend, target, evidence)
        found.culprit = _culprit(found, compiled, evidence)
    found.seconds["culprit"] = time.monotonic() - start
    if found.culprit is None:
        found.culprit = _from_finding(found)
    say(f"culprit: {found.culprit}")
    if shrink and compiled is not None:
        start = time.monotonic()
        _reduce(found, compiled, backend, limit, say)
        found.seconds["reduce"] = time.monotonic() - start
    if out is not None and compiled is not None and found.reduced is not None:
        _write(found, compiled, backend, out)
    return found


def _from_finding(found: Triage) -> Culprit:
    assert found.first is not None
    check = found.first.findings[0].check if found.first.findings else ""
    return Culprit("finding", check or str(found.first.verdict), found.first.reason)


# -------------------------------------------------------------------------------------------- culprit


def _compile_again(subject: Subject, backend: Any, target: Target, evidence: Evidence) -> Any:
    """The failing compile once more, with everything kept: graphs after each pass, the lowered IR, the program's flat inputs."""
    case = Case(subject.micrograph, target)
    with inside.kept(evidence):
        compiled = backend.compile(case)
        oracle.run(compiled, case.inputs(0), compiled.module, calls=subject.micrograph.steps)
    for number, record in enumerate(compiled.watch.graphs):
        if record.decomposed is not None:
            record.decomposed = _Recording(record.decomposed, evidence.inputs, number)
    oracle.run(compiled.at(Stage.DECOMPOSITION), case.inputs(0), compiled.module)
    for record in compiled.watch.graphs:
        if isinstance(record.decomposed, _Recording):
            record.decomposed = record.decomposed.gm
    compiled.watch.rung = ""
    return compiled


class _Recording:
    """A graph that keeps what it is called with."""

    def __init__(self, gm: Any, inputs: dict[int, list[Any]], number: int) -> None:
        self.gm, self.inputs, self.number = gm, inputs, number

    def __call__(self, *values: Any) -> Any:
        self.inputs.setdefault(
            self.number, [v.detach().clone(memory_format=torch.preserve_format) if isinstance(v, torch.Tensor) else v for v in values]
        )
        return self.gm(*values)


def _culprit(found: Triage, compiled: Any, evidence: Evidence) -> Culprit | None:
    assert found.first is not None
    stage, case = found.first.cell.stage, Case(found.subject.micrograph, Target.parse(found.subject.target))
    module = case.module()
    watch = compiled.watch
    numeric = found.kind in {
        "wrong_result",
        "numeric_drift",
        "lost_mutation",
        "wrong_metadata",
        "metadata_loss",
        "overfused",
        "undecomposed",
    }
    if not numeric:
        return None
    if stage is Stage.CAPTURE:
        return inside.of_capture(module, case.inputs(0), watch.captured)
    if stage is Stage.DECOMPOSITION:
        return inside.of_decomposition(module, case.inputs(0), watch)
    for number, record in enumerate(watch.graphs):
        inputs = evidence.inputs.get(number)
        if inputs is None or record.decomposed is None:
            continue
        if stage is Stage.POSTGRAD:
            named = inside.of_passes(evidence, record.decomposed, inputs)
        elif stage in (Stage.FUSION, Stage.CODEGEN):
            named = inside.of_code(evidence, record, inputs, stage)
        else:
            named = Culprit(
                "runtime",
                "what calls the program",
                "the generated program is right; what it is called with, or what becomes of its answer, is not",
            )
        if named is not None and named.what != "wrapper":
            return named
    if stage is Stage.POSTGRAD:
        return Culprit("pass", "between the observed passes", "no single observed pass changes the graph on these inputs")
    return locals().get("named")


# --------------------------------------------------------------------------------------------- reduce


def _reduce(found: Triage, compiled: Any, backend: Any, limit: float, say: Callable[[str], None]) -> None:
    assert found.first is not None and found.culprit is not None
    stage, kind = found.first.cell.stage, found.kind
    if kind not in REDUCIBLE or stage is Stage.CACHE:
        found.unreduced = f"a {kind} of {stage} is a finding about the whole program: the micrograph is the reproducer"
        return
    if len(compiled.watch.captured) != 1:
        found.unreduced = f"{len(compiled.watch.captured)} graphs were captured; the reducer takes one"
        return
    gm = compiled.watch.captured[0]
    inputs = _graph_inputs(compiled, Case(found.subject.micrograph, Target.parse(found.subject.target)))
    if inputs is None:
        found.unreduced = "the inputs of the captured graph could not be had"
        return
    wanted = (stage, kind)
    target = found.subject.target

    def holds(smaller: Any, values: tuple[Any, ...]) -> bool:
        got = reduce.signature(backend, smaller, values, target)
        return got is not None and got[0] == wanted[0] and (got[1] == wanted[1] or {got[1], wanted[1]} <= {"wrong_result", "numeric_drift"})

    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
        found.unreduced = "a training graph: its backward is not a part of the captured graph"
        return
    reducer = reduce.Reducer(gm, inputs, holds, limit, _compiled_once)
    found.reduced = reducer.run(found.culprit.ops)
    say(f"{found.reduced.before} nodes → {found.reduced.nodes}, {found.reduced.tries} tries, {found.reduced.seconds:.0f} s")


def _compiled_once(gm: Any, values: tuple[Any, ...]) -> Any:
    torch._dynamo.reset()
    with torch.no_grad(), torch._inductor.config.patch(force_disable_caches=True):
        return torch.compile(gm)(*oracle.clone_inputs(values))


def _graph_inputs(compiled: Any, case: Case) -> tuple[Any, ...] | None:
    """What the captured graph is called with: recorded while the captured rung runs."""
    kept: list[tuple[Any, ...]] = []
    captured = compiled.watch.captured[0]
    original = captured.forward

    def forward(*values: Any) -> Any:
        kept.append(
            tuple(
                v.detach().clone(memory_format=torch.preserve_format).requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v
                for v in values
            )
        )
        return original(*values)

    captured.forward = forward
    try:
        oracle.run(compiled.at(Stage.CAPTURE), case.inputs(0), compiled.module)
    finally:
        captured.forward = original
        compiled.watch.rung = ""
    if not kept:
        return None
    grads = any(isinstance(x, torch.Tensor) and x.requires_grad for x in case.inputs(0))
    return kept[0] if grads else tuple(v.detach() if isinstance(v, torch.Tensor) else v for v in kept[0])


# ---------------------------------------------------------------------------------------------- write


def _write(found: Triage, compiled: Any, backend: Any, out: Path) -> None:
    assert found.first is not None and found.reduced is not None and found.culprit is not None
    before, after = repro.graph_texts(compiled.watch, found.first.cell.stage.value)
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
    )
    name = f"{found.subject.backend}_{found.first.cell.stage}_{found.subject.micrograph.name().replace('.', '_')}"
    found.repro, found.issue = out / f"{name}.py", out / f"{name}.md"
    repro.write(found.repro, found.reduced.gm, found.reduced.inputs, report)
    code, said = repro.verify(found.repro)
    found.verified = f"exit {code} in a fresh process: {said}"
    found.issue.write_text(repro.issue_text(report, found.repro, (found.reduced.before, found.reduced.nodes)), encoding="utf-8")


def stages_line(results: dict[Stage, Result]) -> str:
    return "  ".join(f"{stage} {results[stage].verdict.sign}" for stage in STAGES if stage in results)
