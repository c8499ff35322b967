"""Many records over time: with which version each difference came, and which cells are flaky."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from conformance.errors import UsageError
from conformance.report.cause import Cause
from conformance.report.diff import Diff, compare
from conformance.report.facts import BOOKKEEPING, CLASSES
from conformance.report.load import version_key
from conformance.report.matrix import Column, Matrix
from conformance.report.style import counted, stage_rank


class Step(NamedTuple):
    """Two neighbouring versions of one series."""

    old: Column
    new: Column
    diff: Diff


@dataclass(frozen=True)
class Arrival:
    """One cause, the versions between which it came, and every series that shows it."""

    old: str
    new: str
    causes: tuple[Cause, ...]
    columns: tuple[Column, ...]

    @property
    def cause(self) -> Cause:
        return self.causes[0]

    @property
    def compiles(self) -> int:
        return sum(len(cause.compiles) for cause in self.causes)


@dataclass
class History:
    matrix: Matrix
    steps: list[Step] = field(default_factory=list)

    def arrivals(self, bookkeeping: bool = False) -> list[Arrival]:
        """The costliest class first, and in it the newest version."""
        grouped: dict[tuple[object, ...], list[tuple[Cause, Step]]] = defaultdict(list)
        for step in self.steps:
            for cause in step.diff.causes:
                if bookkeeping or cause.rank != BOOKKEEPING:
                    packages = frozenset(cause.example.first.new.run.versions(step.new.backend))
                    grouped[cause.rank, cause.stage, cause.signature, packages].append((cause, step))
        found = [arrival for members in grouped.values() for arrival in _arrivals(members)]
        found.sort(key=lambda one: (stage_rank(one.cause.stage), -one.compiles, one.cause.text))
        found.sort(key=lambda one: version_key(one.new)[:2], reverse=True)
        return sorted(found, key=lambda one: CLASSES.index(one.cause.rank))

    def sentence(self) -> str:
        matrix, arrivals = self.matrix, self.arrivals()
        series = sum(len(columns) > 1 for columns in matrix.series())
        over = f"{counted(len(matrix.runs), 'record')}, {series} series of several versions"
        return f"{counted(len(arrivals), 'cause')} over {over}; {counted(len(matrix.flaky), 'flaky cell')}"


def _arrivals(members: list[tuple[Cause, Step]]) -> list[Arrival]:
    """One cause in several series: where one of them has more versions, it says more exactly with which the cause
    came."""
    members.sort(key=lambda pair: version_key(pair[1].old.version)[:2], reverse=True)
    members.sort(key=lambda pair: version_key(pair[1].new.version)[:2])
    found: list[list[tuple[Cause, Step]]] = []
    for cause, step in members:
        home = next((one for one in found if _within(one[0][1], step)), None)
        if home is None:
            found.append([(cause, step)])
        else:
            home.append((cause, step))
    return [
        Arrival(
            one[0][1].old.version,
            one[0][1].new.version,
            tuple(cause for cause, _ in one),
            tuple(step.new for _, step in one),
        )
        for one in found
    ]


def _within(inner: Step, outer: Step) -> bool:
    old, new = (version_key(step.version)[:2] for step in (outer.old, outer.new))
    return old <= version_key(inner.old.version)[:2] and version_key(inner.new.version)[:2] <= new


def record_files(paths: Iterable[Path]) -> list[Path]:
    """The records among files and folders."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not inside:
            raise UsageError(
                f"no records in {path}: expected a folder with .jsonl files, as `conformance run --record` writes them"
            )
        found += inside
    return found


def trace(matrix: Matrix, any_revision: bool = False) -> History:
    """Each version of each series compared with the one before it."""
    sides = matrix.sides()
    steps = [
        Step(old, new, compare(sides[old], sides[new], any_revision))
        for columns in matrix.series()
        for old, new in pairwise(columns)
    ]
    return History(matrix, steps)
