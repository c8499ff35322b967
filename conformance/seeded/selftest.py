"""Can the suite fail? It is run against compilers that were broken on purpose, one seeded fault at a time.

Every fault is put in and examined in a forked process of its own, so that it leaves nothing behind and a fault that kills its process
costs that one. Then the same micrographs with nothing broken: what fails there is a false alarm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import backends, environment, expectations, seeded
from conformance.baseline import Baseline
from conformance.errors import first_line, unknown
from conformance.fresh import FRESH
from conformance.judge import Judge, Result
from conformance.library import load
from conformance.measure import preload
from conformance.plan import THREADS
from conformance.processes import Job, Pool
from conformance.seeded.fault import Fault
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import Target

CLEAN = "(no fault) "  # and a case: backend/target/micrograph
LIMIT = 600.0  # seconds for one fault
CULPRIT_LIMIT = 60.0  # seconds for the reducer


@dataclass
class Caught:
    """What the suite said of one fault."""

    fault: str
    stage: str = ""  # of the first finding; empty: nothing was found
    kind: str = ""
    micrograph: str = ""
    detail: str = ""
    seconds: float = 0.0
    unavailable: str = ""
    alarms: list[str] = field(default_factory=list)  # without a fault: the cells that failed all the same
    versions: dict[str, str] = field(default_factory=dict)
    culprit: str = ""  # what triage names inside the stage: kind of thing, name, ops
    nodes: list[int] = field(default_factory=list)  # before and after the reducer

    @property
    def clean(self) -> bool:
        return self.fault.startswith(CLEAN)

    @property
    def detected(self) -> bool:
        return bool(self.stage)

    def right_stage(self, fault: Fault) -> bool:
        return self.stage in {stage.value for stage in fault.stages}

    def right_kind(self, fault: Fault) -> bool:
        return self.kind in {kind.value for kind in fault.kinds}

    def right_culprit(self, fault: Fault) -> bool:
        return bool(fault.culprit) and fault.culprit in self.culprit


def cases(chosen: Iterable[Fault]) -> list[str]:
    """What these faults are seen on, to be examined without a fault as well."""
    return list(dict.fromkeys(f"{CLEAN}{f.backend}/{f.target}/{name}" for f in chosen for name in f.micrographs))


def run(todo: list[str], *, baseline: bool = False, culprits: bool = False, workers: int = 1) -> Iterator[Caught]:
    """Examine faults by name, and cases without a fault; with `culprits`, by triage. Answers come as they are ready."""
    known = Baseline(environment.environment()) if baseline else None
    judge = Judge(expectations.load(versions=environment.versions()), known)
    micrographs = load()
    preload(_place(name) for name in todo)
    pool = Pool(workers, LIMIT)
    jobs = [Job(name, _one, (name, micrographs, judge, culprits)) for name in todo]
    for event in pool.run(jobs):
        if event.said is not None:
            event.said.versions = environment.versions()
            yield event.said
        elif event.death is not None:
            kind = "timeout" if event.death.timeout else "crash"
            yield Caught(event.job.key, stage="capture", kind=kind, detail=event.death.reason)


def _place(name: str) -> tuple[str, str]:
    if name.startswith(CLEAN):
        backend, target, _ = name.removeprefix(CLEAN).split("/")
        return backend, target
    fault = seeded.get(name)
    return fault.backend, fault.target


# ----------------------------------------------------------------------------- in the process of one fault


def _one(name: str, micrographs: dict[str, Any], judge: Judge, culprits: bool, say: Callable[[Caught], None]) -> None:
    torch.set_num_threads(THREADS)
    start = time.monotonic()
    try:
        if name.startswith(CLEAN):
            caught = _clean(name, micrographs, judge)
        elif culprits:
            caught = _culprit(seeded.get(name), micrographs)
        else:
            caught = _fault(seeded.get(name), micrographs, judge)
    except Exception as error:  # a fault that cannot be put into this version
        caught = Caught(name, unavailable=first_line(error))
    caught.seconds = round(time.monotonic() - start, 1)
    say(caught)


def _fault(fault: Fault, micrographs: dict[str, Any], judge: Judge) -> Caught:
    """The ordinary suite on the fault's micrographs, until the first finding."""
    caught = Caught(fault.name)
    if judge.baseline is not None:
        _record_first(fault, micrographs, judge)
    with fault:
        FRESH.close()  # fresh processes must have the fault, too
        for name in fault.micrographs:
            results = _results(name, fault.backend, fault.target, micrographs, judge)
            if _unobserved(results):
                caught.unavailable = next(iter(results.values())).reason
                continue
            bad = next((result for result in results.values() if result.unexpected), None)
            if bad is not None:
                kind = bad.findings[0].kind.value if bad.findings else str(bad.verdict)
                caught.stage, caught.kind, caught.micrograph, caught.detail = (
                    bad.cell.stage.value,
                    kind,
                    name,
                    bad.reason[:300],
                )
                caught.unavailable = ""
                break
    return caught


def _record_first(fault: Fault, micrographs: dict[str, Any], judge: Judge) -> None:
    """With a baseline: what the compiler shows before the fault goes in stands for a run that was recorded with this version."""
    known = judge.baseline
    assert known is not None
    for name in fault.micrographs:
        for result in _results(name, fault.backend, fault.target, micrographs, Judge(judge.expectations)).values():
            line = result.to_json() | {
                "texts": dict.fromkeys(result.observation.texts, "")
            }  # as the record's writer names them
            known.cells.setdefault(str(result.cell), []).append((dict(known.env), line))


def _culprit(fault: Fault, micrographs: dict[str, Any]) -> Caught:
    """Triage of the fault, on the first of its micrographs that shows it."""
    from conformance.triage import pipeline
    from conformance.triage.micrograph_subject import Subject

    caught = Caught(fault.name)
    for name in fault.micrographs:
        with fault:
            found = pipeline.triage(Subject(micrographs[name], fault.backend, fault.target, name), limit=CULPRIT_LIMIT)
        if found.first is not None:
            caught.stage, caught.kind, caught.micrograph, caught.detail = (
                found.first.cell.stage.value,
                found.kind,
                name,
                found.first.reason,
            )
            if found.culprit is not None:
                caught.culprit = " ".join([found.culprit.what, found.culprit.name, *found.culprit.ops])
            if found.reduced is not None:
                caught.nodes = [found.reduced.before, found.reduced.nodes]
            break
    return caught


def _clean(case: str, micrographs: dict[str, Any], judge: Judge) -> Caught:
    """A case with nothing broken: whatever fails is a false alarm."""
    backend, target, name = case.removeprefix(CLEAN).split("/")
    results = _results(name, backend, target, micrographs, judge)
    caught = Caught(case)
    if _unobserved(results):
        caught.unavailable = next(iter(results.values())).reason
    caught.alarms = [f"{r.cell}: {r.verdict}: {r.reason[:160]}" for r in results.values() if r.unexpected]
    return caught


def _unobserved(results: dict[Stage, Result]) -> bool:
    return {str(result.verdict) for result in results.values()} <= {"unavailable", "unsupported"}


def _results(name: str, backend: str, target: str, micrographs: dict[str, Any], judge: Judge) -> dict[Stage, Result]:
    if name not in micrographs:
        raise unknown("micrograph", name, micrographs)
    return results_here(micrographs[name], backends.get(backend), Target.parse(target), judge=judge)
