"""A plan: the exact cells of a run and everything that decides how they are measured and judged. It is made once, and travels as data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance import core
from conformance.cell import Cell, select
from conformance.errors import UsageError, unknown
from conformance.stage import STAGES, Stage
from conformance.target import Target

if TYPE_CHECKING:
    from conformance.backends.base import Backend

THREADS = (
    2  # what compiles see as the number of threads: generated code depends on it, so that it is the same everywhere
)


@dataclass(frozen=True)
class PlannedCase:
    """One compile: a micrograph through a backend for a target, and the stages that are asked for."""

    backend: str
    target: str
    micrograph: str
    stages: tuple[Stage, ...] = STAGES

    def __str__(self) -> str:
        return f"{self.backend}/{self.target}/{self.micrograph}"

    def cells(self) -> list[Cell]:
        return [Cell(stage, self.backend, self.target, self.micrograph) for stage in self.stages]


@dataclass(frozen=True)
class Plan:
    """cells         the cells of the run, in order
    micrographs   the folder that they come from; None: those that ship with the suite
    expectations  the folder of expectations; None: those that ship with the suite
    baseline      are facts held against recorded runs of the same version?
    timeout       seconds that one case may take
    memory        bytes that the process of one case may take; None: no limit
    threads       the number of threads that compiles see
    plugins       modules that are loaded before the first compile
    """

    cells: tuple[Cell, ...]
    micrographs: str | None = None
    expectations: str | None = None
    baseline: bool = True
    timeout: float = 300.0
    memory: int | None = None
    threads: int = THREADS
    plugins: tuple[str, ...] = field(default=())

    def cases(self, cells: Iterable[Cell] | None = None) -> list[PlannedCase]:
        """The compiles that the cells (all of them, or these) take, in the order in which they come."""
        stages: dict[tuple[str, str, str], set[Stage]] = {}
        for cell in self.cells if cells is None else cells:
            stages.setdefault((cell.backend, cell.target, cell.micrograph), set()).add(cell.stage)
        return [PlannedCase(*case, tuple(s for s in STAGES if s in asked)) for case, asked in stages.items()]


def select_places(backend_names: Iterable[str] = (), target_names: Iterable[str] = ()) -> list[tuple[Backend, Target]]:
    """The backends and targets that the options of a run select. A backend for which no target is given takes its own."""
    from conformance import backends  # it imports torch

    targets = [Target.parse(name) for name in dict.fromkeys(target_names)]
    return [
        (backend, target)
        for backend in map(backends.get, dict.fromkeys(backend_names) or backends.default_backends())
        for target in targets or [Target.parse(backend.default_target)]
    ]


def select_cells(
    backend_names: Iterable[str] = (),
    stage_names: Iterable[str] = (),
    target_names: Iterable[str] = (),
    globs: Iterable[str] = (),
    folder: str | None = None,
) -> tuple[Cell, ...]:
    """The cells that the options of a run select. Anything unknown is named. Without globs, the core of the suite's own micrographs is taken,
    and all of a folder of one's own."""
    from conformance import library  # it imports torch

    known = [stage.value for stage in STAGES]
    for name in stage_names:
        if name not in known:
            raise unknown("stage", name, known)
    chosen = select_places(backend_names, target_names)
    globs = list(globs)
    micrographs = library.load(folder, globs or ["*"])
    if globs:
        try:
            names = select(micrographs, globs, "micrograph")
        except UsageError:
            names = select(library.load(folder), globs, "micrograph")  # the name that is nearest may be in any file
    else:
        names = core.of(micrographs) if folder is None else list(micrographs)
    if folder is not None:  # ours are run in eager by the tests
        library.must_run({name: micrographs[name] for name in names})
    stages = [stage for stage in STAGES if stage.value in set(stage_names)] or list(STAGES)
    cells = tuple(
        Cell(stage, backend.name, target.name, name)
        for backend, target in chosen
        for name in names
        if backend.takes(micrographs[name])
        for stage in stages
    )
    if not cells:
        wanted = sorted({one for name in names for one in micrographs[name].backends})
        raise UsageError(
            f"{names[0]} is for {', '.join(wanted)} only, not for {chosen[0][0].name}: choose another backend"
        )
    return cells


def cores() -> int:
    """How many processes can run at a time here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
