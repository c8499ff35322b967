"""Can the suite fail? It is run against compilers that were broken on purpose, one seeded fault at a time.

Faults are examined one after the other in worker processes, since importing the compilers costs more than most faults do.
A fault that kills its worker costs one worker. Then the same micrographs with nothing broken: what fails there is a false alarm.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from conformance import seeded
from conformance.errors import unknown
from conformance.seeded.fault import Fault

CLEAN = "(no fault) "  # and a case: backend/target/micrograph
LIMIT = 600.0  # seconds for one fault
CULPRIT_LIMIT = 60.0  # seconds for the reducer
_RECORDED: set[str] = set()
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Caught:
    """What the suite said of one fault."""

    fault: str
    stage: str = ""  # of the first finding; empty: nothing was found
    kind: str = ""
    micrograph: str = ""
    detail: str = ""
    seconds: float = 0.0
    examined: int = 0
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


# --------------------------------------------------------------------------------------------- parent


def cases(chosen: Iterable[Fault]) -> list[str]:
    """What these faults are seen on, to be examined without a fault as well."""
    return list(dict.fromkeys(f"{CLEAN}{f.backend}/{f.target}/{name}" for f in chosen for name in f.micrographs))


def run(todo: list[str], *, baseline: bool = False, culprits: bool = False, workers: int = 1) -> Iterator[Caught]:
    """Examine faults by name, and cases without a fault; with `culprits`, by triage. Answers come as they are ready."""
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Caught | BaseException] = queue.SimpleQueue()
    for name in todo:
        asked.put(name)
    with tempfile.TemporaryDirectory(prefix="conformance-selftest-") as kernels, contextlib.ExitStack() as stack:
        for _ in range(min(workers, len(todo))):
            worker = Worker({"baseline": baseline, "culprits": culprits, "kernels": kernels}, alone=workers == 1)
            stack.callback(worker.stop)
            threading.Thread(target=_serve_all, args=(worker, asked, answers), daemon=True).start()
        for _ in todo:
            answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer


def _serve_all(worker: Worker, asked: queue.SimpleQueue[str], answers: queue.SimpleQueue[Caught | BaseException]) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            name = asked.get_nowait()
            try:
                answers.put(worker.ask(name))
            except BaseException as error:
                answers.put(error)


class Worker:
    """A process that is asked one fault after the other. One that dies, or hangs, costs the fault that it was asked; the next
    gets a new process."""

    def __init__(self, request: dict[str, Any], alone: bool = True) -> None:
        self.request, self.alone = request, alone
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> Caught:
        process = self.process if self.process is not None and self.process.poll() is None else self._start()
        assert process.stdin and process.stdout
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        try:
            process.stdin.write(name + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            process.kill()
            process.wait()
            return Caught(name, stage="capture", kind="crash", detail="the process died, or took too long")
        return Caught(**json.loads(line))

    def _start(self) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
        if not self.alone:  # the others have the other cores
            env |= {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "conformance.seeded.selftest", json.dumps(self.request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


# --------------------------------------------------------------------------------------------- worker


def examine(fault: Fault, workbench: Any) -> Caught:
    """The ordinary suite on the fault's micrographs, until the first finding."""
    caught, start = Caught(fault.name), time.monotonic()
    for name in fault.micrographs:
        _recorded(name, fault.backend, fault.target, workbench)
        with _everywhere(fault):
            results = _results(name, fault.backend, fault.target, workbench)
        caught.examined += 1
        verdicts = {str(result.verdict) for result in results.values()}
        if verdicts <= {"unavailable", "unsupported"}:
            caught.unavailable = next(iter(results.values())).reason
            continue
        bad = next((result for result in results.values() if result.verdict.unexpected), None)
        if bad is not None:
            kind = bad.findings[0].kind.value if bad.findings else str(bad.verdict)
            caught.stage, caught.kind, caught.micrograph, caught.detail = bad.cell.stage.value, kind, name, bad.reason[:300]
            caught.unavailable = ""
            break
    caught.seconds = round(time.monotonic() - start, 1)
    return caught


def _recorded(name: str, backend: str, target: str, workbench: Any) -> None:
    """With a baseline: what the compiler shows before the fault goes in stands for a run that was recorded with this version."""
    from conformance.workbench import Workbench

    known, case = workbench.baseline, f"{backend}/{target}/{name}"
    if known is None or case in _RECORDED:
        return
    _RECORDED.add(case)
    for result in _results(name, backend, target, Workbench(workbench.expectations)).values():
        known.cells.setdefault(str(result.cell), []).append((known.env, result.to_json()))


def examine_culprit(fault: Fault) -> Caught:
    """Triage of the fault, on the first of its micrographs that shows it."""
    from conformance import micrograph
    from conformance.triage import pipeline
    from conformance.triage.subject import Subject

    caught, start = Caught(fault.name), time.monotonic()
    library = micrograph.load()
    for name in fault.micrographs:
        with _everywhere(fault):
            found = pipeline.triage(Subject(library[name], fault.backend, fault.target, name), limit=CULPRIT_LIMIT)
        caught.examined += 1
        if found.first is not None:
            caught.stage, caught.kind, caught.micrograph, caught.detail = found.first.cell.stage.value, found.kind, name, found.first.reason
            if found.culprit is not None:
                caught.culprit = " ".join([found.culprit.what, found.culprit.name, *found.culprit.ops])
            if found.reduced is not None:
                caught.nodes = [found.reduced.before, found.reduced.nodes]
            break
    caught.seconds = round(time.monotonic() - start, 1)
    return caught


def examine_clean(case: str, workbench: Any) -> Caught:
    """A case with nothing broken: whatever fails is a false alarm."""
    caught, start = Caught(case), time.monotonic()
    backend, target, name = case.removeprefix(CLEAN).split("/")
    results = _results(name, backend, target, workbench)
    caught.examined = 1
    if {str(result.verdict) for result in results.values()} <= {"unavailable", "unsupported"}:
        caught.unavailable = next(iter(results.values())).reason
    caught.alarms = [f"{r.cell}: {r.verdict}: {r.reason[:160]}" for r in results.values() if r.verdict.unexpected]
    caught.seconds = round(time.monotonic() - start, 1)
    return caught


def _results(name: str, backend: str, target: str, workbench: Any) -> dict[Any, Any]:
    from conformance import backends, micrograph
    from conformance.target import Target

    library = micrograph.load()
    if name not in library:
        raise unknown("micrograph", name, library)
    return workbench.examine(library[name], backends.get(backend), Target.parse(target))


@contextlib.contextmanager
def _everywhere(fault: Fault) -> Iterator[None]:
    """Here, and in the fresh process that the cache stage starts."""
    from conformance import plugins
    from conformance.backends.inductor.hotload import HOTLOAD
    from conformance.seeded.plugin import VARIABLE

    kept = {name: os.environ.get(name) for name in (VARIABLE, plugins.VARIABLE)}
    HOTLOAD.stop()
    with fault:
        os.environ[VARIABLE] = fault.name
        plugins.announce(["conformance.seeded.plugin"])
        try:
            yield
        finally:
            HOTLOAD.stop()
            for name, value in kept.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


@contextlib.contextmanager
def _kernels_kept(store: Path) -> Iterator[None]:
    """Compiled kernels are named by their source, so that the same source need not go through g++ once for each fault. Graphs,
    keys and all other caches start empty as ever."""
    from unittest.mock import patch

    from conformance.backends import inductor

    original = inductor._cache_in

    @contextlib.contextmanager
    def cache_in(folder: Path) -> Iterator[None]:
        _link(store, folder)
        with original(folder):
            yield
        _link(folder, store)

    with patch.object(inductor, "_cache_in", cache_in):
        yield


def _link(source: Path, target: Path) -> None:
    for file in source.glob("??/*.so"):
        twin = target / file.parent.name / file.name
        if not twin.exists():
            twin.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):
                os.link(file, twin)


def _serve(request: dict[str, Any]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from conformance import environment, expectations
    from conformance.backends.inductor.hotload import HOTLOAD
    from conformance.baseline import Baseline
    from conformance.workbench import Workbench

    known = Baseline(environment.environment()) if request["baseline"] else None
    workbench = Workbench(expectations.load(versions=environment.versions()), known)
    with _kernels_kept(Path(request["kernels"])), HOTLOAD.only_when_asked():
        for line in sys.stdin:
            caught = _one(line.strip("\n"), workbench, request["culprits"])
            caught.versions = environment.versions()
            answers.write(json.dumps(asdict(caught)) + "\n")
            answers.flush()


def _one(name: str, workbench: Any, culprit: bool) -> Caught:
    if name.startswith(CLEAN):
        return examine_clean(name, workbench)
    try:
        return examine_culprit(seeded.get(name)) if culprit else examine(seeded.get(name), workbench)
    except Exception as error:  # a fault that cannot be put into this version
        return Caught(name, unavailable=f"{type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
