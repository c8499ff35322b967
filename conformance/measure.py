"""What happens in the process of one case, and what is imported before it is forked."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from conformance import backends, bytecode, library, oracle
from conformance.backends.base import Case
from conformance.checks.measured import LADDER
from conformance.errors import UsageError, first_line
from conformance.examine import examine
from conformance.fork_server import ForkServer
from conformance.fresh import FRESH
from conformance.judge import is_wrong
from conformance.plan import PlannedCase
from conformance.processes import in_fork
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.torch_seam import LARGE_MODULES
from conformance.trace import Trace
from conformance.verdict import Finding, Kind

IMPORT_LIMIT = 300.0  # seconds, for the imports of a backend on a slow machine


@dataclass(frozen=True)
class Unfinished:
    """What was seen of a case until now, told before the next step, which may end the process."""

    trace: Trace


def measure(case: PlannedCase, folder: str | None, threads: int, careful: bool, say: Callable[[Any], None]) -> bool:
    """Measure one case and say its trace; `careful` where its program ended a process before. Returns whether this process can do
    nothing more: its GPU is lost, a capture that broke off has left it unable to draw random numbers, or a setting is not what it
    was before."""
    torch.set_num_threads(threads)
    micrograph, backend = library.find(case.micrograph, folder), backends.get(case.backend)
    FRESH.prepare()
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


class CaseServer(ForkServer):
    """The process that those of cases are forked from."""

    def __init__(self) -> None:
        bytecode.import_alone(*LARGE_MODULES)
        super().__init__()
        self._prepared: set[tuple[str, str]] = set()

    def prepare(self, places: Iterable[tuple[str, str]]) -> None:
        """Have it import what cases of these backends and targets need; it does not wait."""
        if missing := set(places) - self._prepared:
            self._prepared |= missing
            self.call(preload, sorted(missing))


def preload(places: Iterable[tuple[str, str]]) -> None:
    """Import what every case of these backends and targets needs, before processes are forked.

    No forked process can start CUDA once it was started here. Where an import does that (Torch-TensorRT's asks for the capability of the
    GPU), each process imports the package itself, for the several cases that it measures."""
    torch.set_num_threads(1)  # a process that has started OpenMP's threads cannot be forked any more
    with bytecode.importing():
        with torch.compiler.set_stance("force_eager"):  # the oracle runs eager in it; it imports Dynamo
            pass
        for backend, target in dict.fromkeys(places):
            if target != "cuda" or in_fork(partial(_starts_cuda, backend, target), IMPORT_LIMIT) is False:
                _import(backend, target)
    if not torch.cuda.is_available():
        # The same answer, at once: torch looks for the driver's library whenever it asks for GPUs, hundreds of times a compile.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    gc.collect()


def _import(backend: str, target: str) -> None:
    """Import what every case of a backend and target needs, where it can be observed here at all."""
    instance = backends.get(backend)
    if target in instance.targets() and len(instance.unavailable(Target.parse(target))) < len(STAGES):
        instance.preload(Target.parse(target))


def _starts_cuda(backend: str, target: str) -> bool:
    _import(backend, target)
    return torch.cuda.is_initialized()
