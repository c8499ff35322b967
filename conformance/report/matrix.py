"""Records put together: micrographs down, backends × targets × stages across, one verdict a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.report import sanitize
from conformance.report.address import address
from conformance.report.load import Loaded, no_collection, plain_version, version_key
from conformance.report.style import LOOKS, stage_rank
from conformance.report.totals import NOT_JUDGED, Total


class Column(NamedTuple):
    """variant: the backend's version, and the machine where the same version ran on two."""

    backend: str
    target: str
    variant: str


class Key(NamedTuple):
    stage: str
    column: Column
    micrograph: str


@dataclass(frozen=True)
class Entry:
    """A cell of one run."""

    name: str
    verdict: str
    line: Mapping[str, Any]
    run: Loaded


@dataclass
class Matrix:
    runs: list[Loaded]
    columns: list[Column] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    entries: dict[Key, Entry] = field(default_factory=dict)
    flaky: dict[Key, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def total(self, column: Column | None = None, stage: str | None = None) -> Total:
        return Total.of(
            entry.verdict
            for key, entry in self.entries.items()
            if (column is None or key.column == column) and (stage is None or key.stage == stage)
        )

    def totals(self) -> dict[Column, dict[str, Total]]:
        """By column and stage, in one pass."""
        found: dict[Column, dict[str, Total]] = {column: {} for column in self.columns}
        for key, entry in self.entries.items():
            found[key.column].setdefault(key.stage, Total()).verdicts[entry.verdict] += 1
        return found

    def latest(self) -> list[Column]:
        """The newest variant of each backend and target: what a reader wants to see first."""
        newest = {(column.backend, column.target): column for column in self.columns}
        return list(newest.values())


def combine(runs: Sequence[Loaded]) -> Matrix:
    """One matrix of several runs. Where two hold the same cell of the same version, the later one is shown, and a line
    says so."""
    matrix = Matrix(list(runs), problems=[problem for run in runs for problem in run.problems])
    with no_collection():
        _fill(matrix)
    matrix.columns = sorted({key.column for key in matrix.entries}, key=_column_order)
    matrix.stages = sorted({key.stage for key in matrix.entries}, key=stage_rank)
    matrix.rows = sorted({key.micrograph for key in matrix.entries})
    return matrix


def _fill(matrix: Matrix) -> None:
    variants = _Variants(matrix.runs)
    columns: dict[tuple[int, str, str], Column] = {}
    overlaps: dict[tuple[Loaded, Loaded], int] = {}
    strange: dict[Loaded, list[str]] = {}
    for run in matrix.runs:
        for name, line in run.cells.items():
            place = address(name)
            if place is None:
                strange.setdefault(run, []).append(name)
                continue
            column = columns.get((id(run), place.backend, place.target))
            if column is None:
                column = columns[id(run), place.backend, place.target] = Column(
                    place.backend, place.target, variants.of(run, place.backend)
                )
            key = Key(place.stage, column, place.micrograph)
            entry = Entry(f"{place.stage}/{place.backend}/{place.target}/{place.micrograph}", verdict(line), line, run)
            if (other := matrix.entries.get(key)) is not None:
                overlaps[other.run, run] = overlaps.get((other.run, run), 0) + 1
                if differs(other.verdict, entry.verdict) and _same_world(other, entry, place.backend):
                    matrix.flaky.setdefault(key, [other.verdict]).append(entry.verdict)
            matrix.entries[key] = entry
    matrix.problems += _said(strange, overlaps)


def verdict(line: Mapping[str, Any]) -> str:
    word = line.get("verdict")
    return word if isinstance(word, str) and word in LOOKS else sanitize.name(word) or "unknown"


def differs(old: str, new: str) -> bool:
    """Is a change between these verdicts one of the compiler's behaviour, and not only of what could be seen?"""
    return old != new and old not in NOT_JUDGED and new not in NOT_JUDGED


def _same_world(one: Entry, other: Entry, backend: str) -> bool:
    return one.run.world(backend) == other.run.world(backend) and one.line.get("micrograph") == other.line.get("micrograph")


class _Variants:
    """The name of a run's column: its version; with the build or the machine, where one version ran as two builds or on two
    kinds of machine."""

    def __init__(self, runs: Iterable[Loaded]) -> None:
        machines: dict[tuple[str, str], set[str]] = defaultdict(set)
        builds: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.names: dict[tuple[int, str], str] = {}
        found = [(run, backend, run.version(backend)) for run in runs for backend in _backends(run)]
        for run, backend, version in found:
            machines[backend, plain_version(version)].add(run.machine)
            builds[backend, plain_version(version)].add(version)
        for run, backend, version in found:
            plain = plain_version(version)
            parts = [version if len(builds[backend, plain]) > 1 else plain, run.machine if len(machines[backend, plain]) > 1 else ""]
            self.names[id(run), backend] = " ".join(part for part in parts if part)

    def of(self, run: Loaded, backend: str) -> str:
        return self.names[id(run), backend]


def _backends(run: Loaded) -> set[str]:
    return {place.backend for name in run.cells if (place := address(name)) is not None}


def _column_order(column: Column) -> tuple[Any, ...]:
    return (column.backend, column.target, version_key(column.variant), column.variant)


def _said(strange: Mapping[Loaded, list[str]], overlaps: Mapping[tuple[Loaded, Loaded], int]) -> Iterator[str]:
    for run, names in strange.items():
        yield f"{run.path.name}: {len(names)} lines are not of a cell (the first: {sanitize.line(names[0], 60)!r}); they are left out"
    for (older, newer), count in overlaps.items():
        yield f"{count} cells of the same version are in both {older.path.name} and {newer.path.name}; {newer.path.name} is shown"
