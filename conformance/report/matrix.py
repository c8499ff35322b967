"""Records put together: micrographs down, backends × targets × versions across, seven stages each, one verdict a
cell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from conformance import sanitize
from conformance.report.address import Address, address
from conformance.report.load import Loaded, machine_names, no_collection, plain_version, version_key
from conformance.report.style import LOOKS, counted, stage_rank
from conformance.report.totals import NOT_JUDGED, Total


class Column(NamedTuple):
    """machine: a short name, where the records are of several."""

    backend: str
    target: str
    machine: str
    version: str

    @property
    def series(self) -> tuple[str, str, str]:
        """What has versions in time: one backend and target on one machine."""
        return self[:3]

    @property
    def label(self) -> str:
        return " ".join(part for part in (self.backend, self.target, self.version, self.machine) if part)


class Key(NamedTuple):
    stage: str
    column: Column
    micrograph: str

    @property
    def place(self) -> Address:
        return Address(self.stage, self.column.backend, self.column.target, self.micrograph)


class Recorded(NamedTuple):
    """Of the records of a column: the days of the first and the last, how many revisions of the suite, and whether one
    was made from a checkout with changes that no commit has."""

    first: str
    last: str
    revisions: int
    dirty: bool


class Entry(NamedTuple):
    """A cell of one run."""

    verdict: str
    line: dict[str, Any]
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

    def total(self) -> Total:
        return Total.of(entry.verdict for entry in self.entries.values())

    def totals(self) -> dict[Column, dict[str, Total]]:
        """By column and stage, in one pass."""
        found: dict[Column, dict[str, Total]] = {column: {} for column in self.columns}
        for key, entry in self.entries.items():
            found[key.column].setdefault(key.stage, Total()).verdicts[entry.verdict] += 1
        return found

    def series(self) -> list[list[Column]]:
        """The columns of each backend, target and machine, the oldest version first."""
        return [list(columns) for _, columns in groupby(self.columns, key=lambda column: column.series)]

    def latest(self) -> list[Column]:
        """The newest version of each series: what a reader wants to see first."""
        return [columns[-1] for columns in self.series()]

    def recorded(self) -> dict[Column, Recorded]:
        """When and from what the cells of each column were recorded."""
        runs: dict[Column, dict[Loaded, None]] = {column: {} for column in self.columns}
        for key, entry in self.entries.items():
            runs[key.column][entry.run] = None
        return {column: _recorded(list(found)) for column, found in runs.items()}

    def of_another_revision(self) -> set[Key]:
        """The cells that cannot be drawn in one line with the newest of their series: other code of the suite made
        their facts, or the micrograph was another."""
        places = {column: at for at, column in enumerate(self.columns)}
        lines: dict[tuple[object, ...], list[Key]] = defaultdict(list)
        for key in self.entries:
            lines[key.column.series, key.stage, key.micrograph].append(key)
        found: set[Key] = set()
        for keys in lines.values():
            made = {key: self._made_by(key) for key in keys} if len(keys) > 1 else {}
            newest = max(keys, key=lambda key: places[key.column])
            found.update(key for key, by in made.items() if by != made[newest])
        return found

    def _made_by(self, key: Key) -> tuple[object, ...]:
        entry = self.entries[key]
        return entry.run.producer(key.stage, key.column.backend), entry.line.get("micrograph")

    def sides(self) -> dict[Column, dict[Address, Entry]]:
        """The cells of each column, as `diff.compare` takes them."""
        found: dict[Column, dict[Address, Entry]] = {column: {} for column in self.columns}
        for key, entry in self.entries.items():
            found[key.column][key.place] = entry
        return found


def _recorded(runs: Sequence[Loaded]) -> Recorded:
    days = sorted(run.started[:10] for run in runs)
    revisions = {run.suite for run in runs}
    return Recorded(days[0], days[-1], len(revisions), any(run.dirty for run in runs))


def combine(runs: Sequence[Loaded], apart: Sequence[str] = ()) -> Matrix:
    """One matrix of several runs. Where two hold the same cell of the same version and machine, the later one is shown,
    and a line among the problems tells. apart: a name for each run, whose cells are columns of their own."""
    matrix = Matrix(list(runs), problems=[problem for run in runs for problem in run.problems])
    names = _column_names(matrix.runs)
    for run, name in zip(matrix.runs, apart, strict=False):
        names |= {key: ("", f"{version} {name}".strip()) for key, (_, version) in names.items() if key[0] is run}
    with no_collection():
        started = _fill(matrix, names)
    matrix.columns = sorted(
        started, key=lambda column: (*_series_order(column), version_key(column.version)[:2], started[column])
    )
    matrix.stages = sorted({key.stage for key in matrix.entries}, key=stage_rank)
    matrix.rows = sorted({key.micrograph for key in matrix.entries})
    return matrix


def _fill(matrix: Matrix, names: Mapping[tuple[Loaded, str], tuple[str, str]]) -> dict[Column, str]:
    """Fill in the entries; return the columns, and when the newest record of each was started."""
    started: dict[Column, str] = {}
    overlaps: dict[tuple[Loaded, Loaded], int] = defaultdict(int)
    strange: dict[Loaded, list[str]] = defaultdict(list)
    for run in matrix.runs:
        for name, line in run.cells.items():
            place = address(name)
            if place is None:
                strange[run].append(name)
                continue
            column = Column(*place.column, *names[run, place.backend])
            started[column] = run.started
            key = Key(place.stage, column, place.micrograph)
            entry = Entry(verdict(line), line, run)
            if (other := matrix.entries.get(key)) is not None:
                overlaps[other.run, run] += 1
                if differs(other.verdict, entry.verdict) and _same_world(other, entry, place.backend):
                    matrix.flaky.setdefault(key, [other.verdict]).append(entry.verdict)
            matrix.entries[key] = entry
    matrix.problems += _problems(strange, overlaps)
    return started


def verdict(line: Mapping[str, Any]) -> str:
    word = line.get("verdict")
    return word if word in LOOKS else sanitize.name(word) or "unknown"


def differs(old: str, new: str) -> bool:
    """Is a change between these verdicts one of the compiler's behaviour, and not only of what could be seen?"""
    return old != new and old not in NOT_JUDGED and new not in NOT_JUDGED


def _same_world(one: Entry, other: Entry, backend: str) -> bool:
    return one.run.world(backend) == other.run.world(backend) and one.line.get("micrograph") == other.line.get(
        "micrograph"
    )


def _column_names(runs: Iterable[Loaded]) -> dict[tuple[Loaded, str], tuple[str, str]]:
    """(machine, version) of a run's columns, by run and backend. The version with its build, where one version ran as
    two."""
    runs = list(runs)
    machines = machine_names(runs)
    pairs = [(run, backend) for run in runs for backend in run.backends]
    builds: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run, backend in pairs:
        builds[backend, plain_version(run.version(backend))].add(run.version(backend))
    names = {}
    for run, backend in pairs:
        version, plain = run.version(backend), plain_version(run.version(backend))
        names[run, backend] = (machines[run.machine], version if len(builds[backend, plain]) > 1 else plain)
    return names


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """`sm_80` before `sm_100`."""
    return tuple((int(part[:12]), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _series_order(column: Column) -> tuple[Any, ...]:
    return (column.backend, natural(column.target), column.machine)


def _problems(strange: Mapping[Loaded, list[str]], overlaps: Mapping[tuple[Loaded, Loaded], int]) -> Iterator[str]:
    for run, names in strange.items():
        first = sanitize.line(names[0], 60)
        yield f"{run.path.name}: {counted(len(names), 'line')} not of a cell (the first: {first!r}), left out"
    for (older, newer), count in overlaps.items():
        shared = f"{counted(count, 'cell')} of the same version"
        yield f"{shared} in both {older.path.name} and {newer.path.name}; {newer.path.name} is shown"
