"""Two records compared: what the compiler did otherwise, by class of cost, one entry a cause.

A cell is compared where both sides saw it, the micrograph is the same, and the code that made its facts is the same.
What remains is the compiler's. A compile is named by the first stage that differs; compiles that differ in the same way
at the same first stage have one cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from conformance.report.address import Address, address
from conformance.report.cause import Cause, causes, moved
from conformance.report.change import UNSEEN, Change, Comparison, behaviour, by_running
from conformance.report.facts import BOOKKEEPING, CODE, FIXED, LOST, MORE, WRONG
from conformance.report.load import Loaded, findings, no_collection
from conformance.report.matrix import Entry, verdict
from conformance.stage import STAGES, Stage

LEVELS = (WRONG, LOST, MORE, CODE, "any")  # at which `--fail-on` can fail, the worst first
Side = Mapping[Address, Entry]


class Uncompared(NamedTuple):
    """Cells that say nothing about the compiler, and why."""

    reason: str
    cells: int
    example: str


@dataclass
class Diff:
    old: list[Loaded]
    new: list[Loaded]
    warnings: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    uncompared: list[Uncompared] = field(default_factory=list)
    cells: int = 0
    compared: int = 0
    same: int = 0

    def of(self, rank: str) -> list[Cause]:
        return [cause for cause in self.causes if cause.rank == rank]

    def compiles(self, rank: str) -> int:
        return len({one.place for cause in self.of(rank) for one in cause.compiles})

    def failing(self, level: str) -> list[Cause]:
        """The causes at which `--fail-on LEVEL` fails: of that class or a worse one, and not expected. `any`: all."""
        if level == "any":
            return [cause for cause in self.causes if cause.rank != BOOKKEEPING]
        ranks = LEVELS[: LEVELS.index(level) + 1]
        return [cause for cause in self.causes if cause.rank in ranks and cause.fails]


def compare(before: Side, after: Side, any_revision: bool = False) -> Diff:
    """What differs between two sets of cells. any_revision: compare facts that two revisions of the suite made, too."""
    with no_collection():
        return _compare(before, after, Comparison(any_revision))


def _compare(before: Side, after: Side, rules: Comparison) -> Diff:
    diff = Diff(_runs(before), _runs(after), cells=len(before.keys() & after.keys()))
    diff.warnings = list(dict.fromkeys(_incomparable(diff.old, diff.new)))
    compiles: dict[Address, list[Change]] = defaultdict(list)
    missing: dict[str, list[Address]] = defaultdict(list)
    played = [_played(side) for side in (before, after)]
    for place in dict.fromkeys((*before, *after)):
        old, new = before.get(place), after.get(place)
        reason = rules.uncompared(place, old, new)
        if not reason and old is not None and new is not None:
            reason = _not_run(place, (old, new), played)
        if reason:
            missing[reason].append(place)
            continue
        assert old is not None and new is not None
        diff.compared += 1
        change = rules.change(place, old, new)
        if change is None:
            diff.same += 1
        else:
            compiles[place._replace(stage="")].append(change)
    for place, changes in compiles.items():
        changes[:] = [_failed_later(change, before, after) for change in changes]
        changes += _fails_later(place, changes, before, after)
    diff.causes = causes([moved(place, changes) for place, changes in compiles.items()])
    shown = [Uncompared(reason, len(places), "/".join(min(places))) for reason, places in missing.items()]
    diff.uncompared = sorted(shown, key=lambda one: (-one.cells, one.reason))
    return diff


def _fails_later(place: Address, changes: list[Change], before: Side, after: Side) -> list[Change]:
    """What is wrong now at a stage that the old failure did not let be reached: the compile is not right yet. What a cache
    serves to others is no part of the compile."""
    fixed = [change for change in changes if change.rank == FIXED and change.was is not None]
    for at in [place._replace(stage=stage.value) for stage in STAGES if stage is not Stage.CACHE] if fixed else ():
        old, new = before.get(at), after.get(at)
        if old is None or new is None or old.verdict != "blocked" or new.verdict in UNSEEN or not findings(new.line):
            continue
        now = behaviour(new)
        if now.rank == WRONG:
            return [Change(at, WRONG, old, new, was=fixed[0].was, now=now)]
    return []


def _failed_later(change: Change, before: Side, after: Side) -> Change:
    """What is wrong now, and was wrong before as well, at a later stage: no new failure, or another one in its place."""
    if change.rank != WRONG or change.was is None or change.was.rank or change.now is None:
        return change
    here = Stage(change.place.stage)
    for stage in STAGES[here.order + 1 :]:
        at = change.place._replace(stage=stage.value)
        old, new = before.get(at), after.get(at)
        if old is not None and new is not None and new.verdict == "blocked" and behaviour(old).rank == WRONG:
            was = behaviour(old)
            if was.kinds == change.now.kinds:
                return replace(change, rank=CODE, was=was, before_at=stage.value)
            return replace(change, was=was)
    return change


def _played(side: Side) -> dict[Address, bool]:
    """The compiles of columns whose programs can be run: was this one?"""
    runtime = {place: entry.verdict not in UNSEEN for place, entry in side.items() if place.stage == "runtime"}
    columns = {place.column for place, ran in runtime.items() if ran}
    return {
        place._replace(stage=""): side[place].verdict != "unavailable" for place in runtime if place.column in columns
    }


def _not_run(place: Address, pair: tuple[Entry, Entry], played: list[dict[Address, bool]]) -> str:
    """A stage passes as long as its program is not run: a failure that only running shows is then new to the record alone."""
    ran = [one.get(place._replace(stage=""), True) for one in played]
    for name, mine, other in (("old", 0, 1), ("new", 1, 0)):
        if not ran[mine] and by_running(pair[other]) and not by_running(pair[mine]):
            return f"the program as of this stage was not run in the {name} record"
    return ""


def _runs(side: Side) -> list[Loaded]:
    return sorted({entry.run for entry in side.values()}, key=lambda run: (run.started, run.path))


# ---------------------------------------------------------------------------------------------- the runs


def _incomparable(old: list[Loaded], new: list[Loaded]) -> Iterator[str]:
    for run in (*old, *new):
        yield from run.problems[:10]
    machines = [{run.machine for run in runs} for runs in (old, new)]
    if machines[0] != machines[1] and all(machines):
        names = [" or ".join(sorted(" ".join(part for part in one if part) for one in found)) for found in machines]
        yield f"two machines ({names[0]} → {names[1]}): facts that depend on the machine count as bookkeeping"
    if {run.header.get("expectations") for run in old} != {run.header.get("expectations") for run in new}:
        yield "two sets of expectations: failures are compared by what they are, whether expected or not"


class Swap(NamedTuple):
    """Compare cells of one name in the old record with cells of another in the new: `inductor:torch_tensorrt`."""

    old: str
    new: str

    @classmethod
    def parse(cls, text: str | None) -> Swap | None:
        old, _, new = (text or "").partition(":")
        return cls(old, new or old) if text else None


def sides(
    old: Loaded, new: Loaded, backend: Swap | None = None, target: Swap | None = None
) -> tuple[Side, Side, list[str]]:
    """The cells of two records as `compare` takes them, and what was decided about them. Two records of one backend (or
    target) each that are not the same are compared with each other."""
    with no_collection():
        before, after = _cells(old), _cells(new)
    notes = []
    swaps = {"backend": backend, "target": target}
    for part, swap in swaps.items():
        names = [{getattr(place, part) for place in side} for side in (before, after)]
        if swap is None and len(names[0]) == len(names[1]) == 1 and names[0] != names[1]:
            swap = Swap(names[0].pop(), names[1].pop())
            notes.append(f"compared across {part}s: {swap.old} → {swap.new}")
        if swap is not None:
            before = {place: entry for place, entry in before.items() if getattr(place, part) == swap.old}
            after = {
                place._replace(**{part: swap.old}): entry
                for place, entry in after.items()
                if getattr(place, part) == swap.new
            }
    if not before.keys() & after.keys():
        notes.append(
            "the two records have no cell in common: --backend OLD:NEW or --target OLD:NEW compares different ones"
        )
    return before, after, notes


def _cells(run: Loaded) -> dict[Address, Entry]:
    return {
        place: Entry(verdict(line), line, run)
        for name, line in run.cells.items()
        if (place := address(name)) is not None
    }
