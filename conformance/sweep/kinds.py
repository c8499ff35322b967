"""Kinds of work that a worker can do, in the interpreter of one environment. A kind names its units, each of which some worker does, and
the lines that a unit gives. Another kind is another class in `KINDS`, or one of your own (`--kind MODULE:CLASS`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Protocol

from conformance.errors import UsageError, first_line, unknown
from conformance.plugins import load_plugins
from conformance.processes import die_with_parent
from conformance.sweep.operators import Operators
from conformance.sweep.spec import Work

Message = dict[str, Any]  # {"unit", "key", "line", "texts"} for a line; {"begun": unit} for what is being worked on


class Kind(Protocol):
    """patterns: what the lines of a unit are called, `{}` standing for the unit. `key`: the field of a line that has that name; None:
    the lines are cells, and what they are written into is a record."""

    patterns: Sequence[str]
    key: str | None

    def __init__(self, work: Work) -> None: ...

    def header(self, argv: list[str]) -> dict[str, Any]:
        """What the answers depend on: two workers whose answers go into one file must say the same."""

    def units(self) -> list[str]:
        """All of them, in order."""

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        """Do these units; of each, the lines of these names."""

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        """The lines of a unit that took its worker with it whenever it was tried."""


class Cells:
    """Micrographs through compilers: a unit is a case, `backend/target/micrograph`, and gives a line a stage."""

    key: str | None = None

    def __init__(self, work: Work) -> None:
        from conformance.measure import CaseServer
        from conformance.plan import Plan, select_cells, select_places

        server = CaseServer()
        server.prepare((backend.name, target.name) for backend, target in select_places(work.backends, work.targets))
        from conformance.session import Session

        folder, memory = work.folder or None, int(work.memory * 2**30) or None
        self.cells = select_cells(work.backends, work.stages, work.targets, work.micrographs, folder)
        self.patterns: Sequence[str] = [
            f"{stage}/{{}}" for stage in dict.fromkeys(cell.stage.value for cell in self.cells)
        ]
        plan = Plan(
            (), folder, work.expectations or None, work.baseline, work.timeout, memory, work.threads, work.plugins
        )
        self.session = Session(plan, reuse=not work.fresh, server=server)

    def header(self, argv: list[str]) -> dict[str, Any]:
        from conformance import environment

        return environment.header(argv, self.session.expected.digest)

    def units(self) -> list[str]:
        return list(dict.fromkeys(f"{cell.backend}/{cell.target}/{cell.micrograph}" for cell in self.cells))

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        from conformance.session import Ended

        cases = [self._case(unit, names) for unit, names in units.items()]
        for event in self.session.run(cases, workers=1):
            if isinstance(event, Ended):
                yield from _lines(event.case, event.results, {"reused": True} if event.reused else {})
            else:
                yield {"begun": str(event.case)}

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        case = self._case(unit, names)
        micrograph = self.session.micrographs[case.micrograph]
        yield from _lines(case, self.session.judge.died(case.stages, case.cells()[0], micrograph, False, reason), {})

    @staticmethod
    def _case(unit: str, names: list[str]) -> Any:
        from conformance.plan import PlannedCase
        from conformance.stage import STAGES

        wanted = {name.partition("/")[0] for name in names}
        backend, target, micrograph = unit.split("/", 2)
        return PlannedCase(backend, target, micrograph, tuple(stage for stage in STAGES if stage.value in wanted))


def _lines(case: Any, results: dict[Any, Any], extra: dict[str, Any]) -> Iterator[Message]:
    for result in results.values():
        line = result.to_json() | extra
        yield {"unit": str(case), "key": line["cell"], "line": line, "texts": dict(result.observation.texts)}


class Selftest:
    """Seeded faults: a unit is a fault, or a case with nothing broken. Lines are those of `conformance selftest --record`."""

    key: str | None = "fault"
    patterns: Sequence[str] = ("{}",)

    def __init__(self, work: Work) -> None:
        from conformance import seeded

        faults = seeded.all_faults()
        globs = work.micrographs or ("*",)
        self.faults = [
            fault
            for fault in faults.values()
            for texts in [(fault.name, fault.stage.value, fault.backend, fault.target)]
            if any(fnmatchcase(text, glob) for glob in globs for text in texts)
        ]
        if not self.faults:
            raise unknown("seeded fault", globs[0], faults)

    def header(self, argv: list[str]) -> dict[str, Any]:
        from conformance import environment

        return environment.header(argv, "")

    def units(self) -> list[str]:
        from conformance.seeded import selftest

        return [*(fault.name for fault in self.faults), *selftest.cases(self.faults)]

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        from conformance.seeded import selftest

        for caught in selftest.run(list(units), workers=1):
            yield _said(caught.fault, asdict(caught))

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        from conformance.seeded.selftest import Caught

        yield _said(unit, asdict(Caught(unit, stage="capture", kind="crash", detail=reason)))


class Fuzz:
    """Sessions of the fuzzer: a unit is a session with a seed of its own. All keep their failing examples in one database."""

    key: str | None = "session"
    patterns: Sequence[str] = ("{}",)

    def __init__(self, work: Work) -> None:
        self.work = work

    def header(self, argv: list[str]) -> dict[str, Any]:
        from conformance import environment

        return environment.header(argv, "")

    def units(self) -> list[str]:
        pairs = [
            (backend, target)
            for backend in self.work.backends or ("inductor",)
            for target in self.work.targets or ("cpu",)
        ]
        return [f"{backend}/{target}/seed {seed}" for seed in range(self.work.sessions) for backend, target in pairs]

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        for unit in units:
            yield {"begun": unit}
            yield _said(unit, {"session": unit, **self._session(*unit.split("/"))})

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        yield _said(unit, {"session": unit, "error": reason})

    def _session(self, backend: str, target: str, seed: str) -> dict[str, Any]:
        words = [
            "-b",
            backend,
            "-t",
            target,
            "--seed",
            seed.removeprefix("seed "),
            "--minutes",
            str(self.work.minutes),
            "--json",
        ]
        words += [word for glob in self.work.micrographs for word in ("-m", glob)]
        words += ["--micrographs", self.work.folder] if self.work.folder else []
        words += ["--database", self.work.database] if self.work.database else []
        words += [word for name in self.work.plugins for word in ("--plugin", name)]
        command = [sys.executable, "-m", "conformance.cli", "fuzz", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent
        )
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        if done.returncode not in (0, 1) or not done.stdout.strip():
            return {"error": said[0][-300:]}
        return {"exit": done.returncode, **json.loads(done.stdout.strip().splitlines()[-1])}


def _said(unit: str, line: dict[str, Any]) -> Message:
    return {"unit": unit, "key": unit, "line": line, "texts": {}}


KINDS: dict[str, Callable[[Work], Kind]] = {"cells": Cells, "selftest": Selftest, "fuzz": Fuzz, "ops": Operators}


def kind_of(work: Work) -> Kind:
    """The kind, made ready. Plugins are loaded first: they patch compilers."""
    load_plugins(work.plugins)
    module, _, name = work.kind.partition(":")
    if name:
        try:
            return getattr(import_module(module), name)(work)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"no kind of work {work.kind!r}: {first_line(error)}") from None
    if work.kind not in KINDS:
        raise unknown("kind of work", work.kind, KINDS)
    if work.kind == "fuzz" and work.sessions < 1:
        raise UsageError("a fuzz sweep needs at least one session: sessions = 4")
    return KINDS[work.kind](work)
