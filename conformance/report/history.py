"""A folder of records over time: per cell its verdicts and numbers by version, and whether it is flaky."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from conformance.errors import UsageError
from conformance.report import facts
from conformance.report.address import Address, address
from conformance.report.load import Loaded, mapping, no_collection, plain_version, seconds, version_key
from conformance.report.matrix import differs, verdict
from conformance.report.style import stage_rank


class Point(NamedTuple):
    """A cell in one run. world: all that must be equal for two verdicts to have to be equal."""

    version: str
    verdict: str
    world: tuple[object, ...]
    run: int
    number: float | None
    seconds: float


@dataclass
class Trend:
    place: Address
    points: list[Point]

    @property
    def flaky(self) -> bool:
        """Two verdicts of the same compiler, machine, suite and micrograph."""
        said: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for point in self.points:
            said[point.world].append(point.verdict)
        return any(differs(words[0], word) for words in said.values() for word in words[1:])

    @property
    def changed(self) -> bool:
        return any(differs(a.verdict, b.verdict) for a, b in zip(self.points, self.points[1:], strict=False))

    @property
    def moved(self) -> bool:
        numbers = {point.number for point in self.points if point.number is not None}
        return len(numbers) > 1

    def summary(self) -> str:
        """`2.11.0 pass, 2.15.0 fail`: where the verdict changed."""
        said = []
        for index, point in enumerate(self.points):
            if index == 0 or point.verdict != self.points[index - 1].verdict:
                said.append(f"{point.version or 'unknown'} {point.verdict}")
        return ", ".join(said)


@dataclass
class History:
    runs: list[Loaded]
    trends: list[Trend] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def flaky(self) -> list[Trend]:
        return [trend for trend in self.trends if trend.flaky]

    @property
    def changed(self) -> list[Trend]:
        return [trend for trend in self.trends if trend.changed and not trend.flaky]

    @property
    def moved(self) -> list[Trend]:
        """The verdict stayed, the number did not."""
        return [trend for trend in self.trends if trend.moved and not trend.changed]

    def sentence(self) -> str:
        flaky, changed, moved = len(self.flaky), len(self.changed), len(self.moved)
        return (
            f"{len(self.trends):,} cells over {len(self.runs)} records: {changed:,} changed their verdict with a version, "
            f"{flaky:,} without one (flaky), {moved:,} moved a number and kept the verdict"
        )


def records(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    found = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else []
    if not found:
        raise UsageError(f"no records in {folder}: expected a folder with .jsonl files, as `conformance run --record` writes them")
    return found


def trace(runs: Iterable[Loaded]) -> History:
    history = History(list(runs))
    history.problems = [problem for run in history.runs for problem in run.problems]
    points: dict[Address, list[Point]] = defaultdict(list)
    plots = {stage: fact for stage, fact in facts.PLOTS.values()}
    with no_collection():
        for index, run in enumerate(history.runs):
            worlds: dict[str, tuple[object, ...]] = {}
            for name, line in run.cells.items():
                if (place := address(name)) is None:
                    continue
                world = worlds.get(place.backend)
                if world is None:
                    world = worlds[place.backend] = run.world(place.backend)
                fact = plots.get(place.stage)
                number = facts.number(mapping(line.get("observation")).get(fact)) if fact else None
                version = plain_version(run.version(place.backend))
                points[place].append(Point(version, verdict(line), (*world, str(line.get("micrograph"))), index, number, seconds(line)))
    for place, found in points.items():
        found.sort(key=lambda point: (version_key(point.version), point.run))
        history.trends.append(Trend(place, found))
    history.trends.sort(key=lambda trend: (stage_rank(trend.place.stage), trend.place))
    return history
