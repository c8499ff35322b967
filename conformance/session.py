"""A session: runs the cases of a plan in forked processes, judges what they measured, and hands on the results as cases end."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from conformance import backends, environment, expectations, library, oracle
from conformance.backends.base import Backend, Case
from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.checks.measured import LADDER
from conformance.errors import UsageError, first_line
from conformance.examine import examine
from conformance.fresh import FRESH
from conformance.judge import Judge, Result, is_wrong
from conformance.micrograph import Micrograph
from conformance.plan import Plan, PlannedCase
from conformance.processes import Death, Job, Pool, in_fork
from conformance.result_cache import TraceCache
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Trace
from conformance.verdict import Finding, Kind

CASES_A_GPU_PROCESS = 48  # a CUDA context, Triton's first compile and Torch-TensorRT's import take long in each
IMPORT_LIMIT = 300.0  # seconds, for the imports of a backend on a slow machine


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


@dataclass(frozen=True)
class Unfinished:
    """What was seen of a case until now, told before the next step, which may end the process."""

    trace: Trace


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
    """Everything that the cases of a plan share. `reuse`: take what an earlier run measured, where nothing changed since."""

    plan: Plan
    reuse: bool = False
    traces: TraceCache | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        torch.set_num_threads(1)  # in this process: one that has started OpenMP's threads cannot be forked any more
        self.micrographs = library.load(self.plan.micrographs)
        self.expected = expectations.load(self.plan.expectations, environment.versions())
        baseline = Baseline(environment.environment()) if self.plan.baseline else None
        self.judge = Judge(self.expected, baseline)
        self._no_stale_expectation()
        if not self.plan.plugins:
            self.traces = TraceCache(self.plan)

    def _no_stale_expectation(self) -> None:
        """An expectation that names no cell of the suite is a mistake."""
        if self.plan.micrographs is not None or not self.expected.entries:
            return
        targets = {name: backends.get(name).targets() for name in backends.names()}
        for entry in self.expected.unmatched(targets, self.micrographs):
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
        """In the order of what they took before, so that no process is left alone with a long one at the end."""
        seconds = self.traces.seconds() if self.traces else {}
        usual = sorted(seconds.values())[len(seconds) // 2] if seconds else 0.0
        return sorted(cases, key=lambda case: -seconds.get(str(case), usual))

    def _measured(self, cases: list[PlannedCase], workers: int) -> Iterator[Ended | Begun]:
        if not cases:
            return
        self._preload(cases)
        pool = Pool(workers, self.plan.timeout, self.plan.memory, share=CASES_A_GPU_PROCESS)
        at: dict[PlannedCase, Stage] = {}
        careful: dict[PlannedCase, Careful] = {}
        jobs = [
            Job(case, self._measure, (case, False), (case.backend, case.target) if case.target == "cuda" else None)
            for case in cases
        ]
        for event in pool.run(jobs):
            case: PlannedCase = event.job.key
            if isinstance(event.said, Stage):
                at[case] = event.said
                yield Begun(case, event.said)
            elif isinstance(event.said, Unfinished):
                careful[case].seen = event.said.trace
            elif isinstance(event.said, Trace):
                if case in careful:
                    careful[case].complete(event.said)
                elif self.traces:
                    self.traces.put(case, self.micrographs[case.micrograph], event.said)
                yield Ended(case, self._judged(case, event.said))
            elif isinstance(event.said, UsageError):
                raise event.said
            elif (
                event.death is not None and event.death.fault and at.get(case) is Stage.RUNTIME and case not in careful
            ):
                careful[case] = Careful(event.death)
                pool.add(Job(case, self._measure, (case, True)))
            elif event.death is not None:
                seen = careful[case].seen if case in careful else None
                yield Ended(case, self._died(case, at.get(case, Stage.CAPTURE), event.death, seen))

    def _died(self, case: PlannedCase, stage: Stage, death: Death, seen: Trace | None) -> dict[Stage, Result]:
        """The process of a case died at a stage. Of what was measured carefully, all that was seen before is told."""
        if seen is None or not seen.observations:
            cell = Cell(stage, case.backend, case.target, case.micrograph)
            return self.judge.died(case.stages, cell, self.micrographs[case.micrograph], death.timeout, death.reason)
        kind = Kind.TIMEOUT if death.timeout else Kind.CRASH
        seen.died(stage, Finding(kind, LADDER, death.reason))
        return self._judged(case, seen)

    def _preload(self, cases: list[PlannedCase]) -> None:
        """Import once what every process needs, before any is forked."""
        with torch.compiler.set_stance("force_eager"):  # the oracle runs eager in it; it imports Dynamo
            pass
        preload((case.backend, case.target) for case in cases)
        gc.collect()

    def _judged(self, case: PlannedCase, trace: Trace) -> dict[Stage, Result]:
        return self.judge.results(trace, self.micrographs[case.micrograph], case.stages)

    # ------------------------------------------------------------------------------- in the process of one case

    def _measure(self, case: PlannedCase, careful: bool, say: Callable[[Any], None]) -> bool:
        """Measure one case and say its trace; `careful` where its program ended a process before. Returns whether this process can do
        nothing more: its GPU is lost, a capture that broke off has left it unable to draw random numbers, or a setting is not what it
        was before."""
        torch.set_num_threads(self.plan.threads)
        FRESH.prepare()
        micrograph, backend = self.micrographs[case.micrograph], backends.get(case.backend)
        before = oracle.modes_in_force() | backend.settings_in_force()
        at = [Stage.CAPTURE]

        def progress(stage: Stage) -> None:
            at[0] = stage
            say(stage)

        def stop(trace: Trace) -> bool:
            return is_wrong(trace, micrograph)

        try:
            tell = (lambda trace: say(Unfinished(trace))) if careful else None
            trace = examine(Case(micrograph, Target.parse(case.target)), backend, case.stages, stop, progress, tell)
        except UsageError as error:
            say(error)
            return False
        except BaseException as error:  # SystemExit and KeyboardInterrupt, raised inside a compile, too
            trace = Trace(case.micrograph, case.backend, case.target, case.stages)
            trace.at(at[0]).findings.append(Finding(Kind.CRASH, LADDER, first_line(error)))
        lost = oracle.device_lost() if case.target == "cuda" else ""
        crashed = any(f.kind is Kind.CRASH for seen in trace.observations.values() for f in seen.findings)
        if lost and not crashed and at[0] not in trace.unavailable:  # eager may have lost it: then nothing was observed
            trace.at(at[0]).findings.append(Finding(Kind.CRASH, LADDER, f"the CUDA context was lost: {lost}"))
        say(trace)
        changed = oracle.modes_in_force() | backend.settings_in_force() != before
        return bool(lost) or changed or (case.target == "cuda" and not oracle.device_draws())


def preload(places: Iterable[tuple[str, str]]) -> None:
    """Import what every case of these backends and targets needs, before processes are forked.

    No forked process can start CUDA once it was started here. Where an import does that (Torch-TensorRT's asks for the capability of the
    GPU), each process imports the package itself, for the several cases that it measures."""
    for backend, target in dict.fromkeys(places):
        if target != "cuda" or in_fork(partial(_starts_cuda, backend, target), IMPORT_LIMIT) is False:
            _import(backend, target)


def _import(backend: str, target: str) -> None:
    """Import what every case of a backend and target needs, where it can be observed here at all."""
    instance = backends.get(backend)
    if len(instance.unavailable(Target.parse(target))) < len(STAGES):
        instance.preload(Target.parse(target))


def _starts_cuda(backend: str, target: str) -> bool:
    _import(backend, target)
    return torch.cuda.is_initialized()


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
