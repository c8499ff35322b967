"""A session: runs the cases of a plan in forked processes, judges what they measured, and hands on the results as cases end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

import torch

from conformance import backends, core, environment, expectations, library
from conformance.backends.base import Backend, Case
from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.checks.measured import LADDER
from conformance.errors import UsageError
from conformance.examine import examine
from conformance.judge import Judge, Result, is_wrong
from conformance.measure import CaseServer, Unfinished, measure
from conformance.micrograph import Micrograph
from conformance.plan import Plan, PlannedCase
from conformance.processes import Death, Job
from conformance.result_cache import TraceCache
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Trace
from conformance.verdict import Finding, Kind

CASES_A_GPU_PROCESS = 48  # a CUDA context, Triton's first compile and Torch-TensorRT's import take long in each


@dataclass(frozen=True)
class Ended:
    """A case that ended: a result for each stage that was asked for. `reused`: it was measured by an earlier run."""

    case: PlannedCase
    results: dict[Stage, Result]
    reused: bool = False


@dataclass(frozen=True)
class Begun:
    """A case that a process has begun to work on, or the stage that it has come to."""

    case: PlannedCase
    stage: Stage


@dataclass
class Careful:
    """A case whose program ended its process, measured once more with its earlier forms first: how it died, and what was seen until now."""

    death: Death
    seen: Trace | None = None

    def complete(self, trace: Trace) -> None:
        """It did not die again: that it died once is still found."""
        if not any(seen.findings for seen in trace.observations.values()):
            trace.died(Stage.RUNTIME, Finding(Kind.CRASH, LADDER, self.death.reason))


@dataclass
class Session:
    """Everything that the cases of a plan share. `reuse`: take what an earlier run measured, where nothing changed since. `server`: the
    process that those of the cases are forked from, started before the library was loaded."""

    plan: Plan
    reuse: bool = False
    server: CaseServer | None = None
    traces: TraceCache | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        torch.set_num_threads(1)  # in this process, too: it may be forked for a server
        asked = {cell.micrograph for cell in self.plan.cells} or {"*"}  # a sweep's worker is told its cases later
        self.micrographs = library.load(self.plan.micrographs, asked)
        self.expected = expectations.load(self.plan.expectations, environment.versions())
        baseline = Baseline(environment.environment()) if self.plan.baseline else None
        self.judge = Judge(self.expected, baseline)
        self._no_stale_expectation()
        if not self.plan.plugins:
            self.traces = TraceCache(self.plan)

    def _no_stale_expectation(self) -> None:
        """An expectation that names no cell of the suite is a mistake. Of families that were not loaded, the others are not known."""
        if self.plan.micrographs is not None or not self.expected.entries:
            return
        targets = {name: backends.get(name).targets() for name in backends.names()}
        others = library.families().keys() - {micrograph.family() for micrograph in self.micrographs.values()}
        for entry in self.expected.unmatched(targets, self.micrographs):
            if not library.may_name_one_of(entry.micrograph, others):
                raise UsageError(f"{entry.source} matches no cell: {entry.cell!r}; mend or remove it")

    # -------------------------------------------------------------------------------------------------- running

    def run(self, cases: Iterable[PlannedCase], workers: int) -> Iterator[Ended | Begun]:
        """Yields each case as it ends, those first that need not be measured; in between, what is being worked on."""
        missing = []
        for case in cases:
            if (ended := self._unsupported(case) or self._reused(case)) is not None:
                yield ended
            else:
                missing.append(case)
        yield from self._measured(self._longest_first(missing), workers)

    def _unsupported(self, case: PlannedCase) -> Ended | None:
        """A target that the backend makes no code for."""
        backend = backends.get(case.backend)
        if case.target in backend.targets():
            return None
        reason = f"{backend.name} makes code for {', '.join(backend.targets())}"
        return Ended(case, self.judge.unsupported(case.cells(), self.micrographs[case.micrograph], reason))

    def _reused(self, case: PlannedCase) -> Ended | None:
        trace = self.traces.get(case, self.micrographs[case.micrograph]) if self.traces and self.reuse else None
        return None if trace is None else Ended(case, self._judged(case, trace), reused=True)

    def _longest_first(self, cases: list[PlannedCase]) -> list[PlannedCase]:
        """In the order of what they took before, so that no process is left alone with a long one at the end: here or, where they were never
        measured here, where the core was."""
        here, recorded = self.traces.seconds() if self.traces else {}, core.seconds()
        usual = median(here.values() or recorded.values())
        return sorted(cases, key=lambda case: -here.get(str(case), recorded.get(case.micrograph, usual)))

    def _measured(self, cases: list[PlannedCase], workers: int) -> Iterator[Ended | Begun]:
        """A case whose program ended its process is measured once more, carefully, when all others are done."""
        deaths: dict[PlannedCase, Death] = {}
        yield from self._forked(cases, workers, deaths, None)
        if deaths:
            yield from self._forked(list(deaths), workers, {}, {case: Careful(death) for case, death in deaths.items()})

    def _forked(
        self,
        cases: list[PlannedCase],
        workers: int,
        deaths: dict[PlannedCase, Death],
        careful: dict[PlannedCase, Careful] | None,
    ) -> Iterator[Ended | Begun]:
        """Each case in a process of its own. Programs that ended theirs go into `deaths`, where they are not measured carefully yet."""
        if not cases:
            return
        at: dict[PlannedCase, Stage] = {}
        jobs = [self._job(case, careful is not None) for case in cases]
        for event in self._server(cases).run(jobs, workers, self.plan.timeout, self.plan.memory, CASES_A_GPU_PROCESS):
            case: PlannedCase = event.job.key
            if isinstance(event.said, Stage):
                at[case] = event.said
                yield Begun(case, event.said)
            elif isinstance(event.said, Unfinished):
                assert careful is not None
                careful[case].seen = event.said.trace
            elif isinstance(event.said, Trace):
                if careful is not None:
                    careful[case].complete(event.said)
                elif self.traces:
                    self.traces.put(case, self.micrographs[case.micrograph], event.said)
                yield Ended(case, self._judged(case, event.said))
            elif isinstance(event.said, UsageError):
                raise event.said
            elif event.death is not None:
                stage = at.get(case, Stage.CAPTURE)
                if careful is None and event.death.fault and stage is Stage.RUNTIME:
                    deaths[case] = event.death
                else:
                    yield Ended(case, self._died(case, stage, event.death, careful[case].seen if careful else None))

    def _job(self, case: PlannedCase, careful: bool) -> Job:
        group = (case.backend, case.target) if case.target == "cuda" and not careful else None
        return Job(case, measure, (case, self.plan.micrographs, self.plan.threads, careful), group)

    def _server(self, cases: Iterable[PlannedCase]) -> CaseServer:
        """The one that was started before; or one that is started now, with the library in it."""
        self.server = self.server or CaseServer()
        self.server.prepare((case.backend, case.target) for case in cases)
        return self.server

    def _died(self, case: PlannedCase, stage: Stage, death: Death, seen: Trace | None) -> dict[Stage, Result]:
        """The process of a case died at a stage. Of what was measured carefully, all that was seen before is told."""
        if seen is None or not seen.observations:
            cell = Cell(stage, case.backend, case.target, case.micrograph)
            return self.judge.died(case.stages, cell, self.micrographs[case.micrograph], death.timeout, death.reason)
        kind = Kind.TIMEOUT if death.timeout else Kind.CRASH
        seen.died(stage, Finding(kind, LADDER, death.reason))
        return self._judged(case, seen)

    def _judged(self, case: PlannedCase, trace: Trace) -> dict[Stage, Result]:
        return self.judge.results(trace, self.micrographs[case.micrograph], case.stages)


def results_here(
    micrograph: type[Micrograph],
    backend: Backend,
    target: Target,
    stages: Collection[Stage] = STAGES,
    judge: Judge | None = None,
) -> dict[Stage, Result]:
    """Measure and judge one case in this very process; without a judge, nothing is expected and there is no baseline."""
    judge = judge or Judge(expectations.Expectations([], {}))
    if target.name not in backend.targets():
        cells = PlannedCase(backend.name, target.name, micrograph.name(), tuple(stages)).cells()
        return judge.unsupported(cells, micrograph, f"{backend.name} makes code for {', '.join(backend.targets())}")
    trace = examine(Case(micrograph, target), backend, stages, stop=lambda trace: is_wrong(trace, micrograph))
    return judge.results(trace, micrograph, stages)
