"""Two runs compared: per compile, the first stage that moved; and what moved there, grouped by likely cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.report import facts, sanitize
from conformance.report.address import Address, address
from conformance.report.load import Loaded, findings, mapping, no_collection
from conformance.report.matrix import verdict
from conformance.report.style import stage_rank

# What every version of a compiler changes a little: alone it is a movement, beside another it is not the first.
_RESTLESS = frozenset({"guards"})
CLASSES = ("regressed", "fixed", "moved", "new", "gone", "reworded")
# How bad a behaviour is. A known failure is a failure, and an unexpected pass a pass: expectations are not behaviour.
_BAD = {"pass": 0, "xpass": 0, "unsupported": 1, "fallback": 2, "fail": 3, "xfail": 3, "timeout": 4, "error": 5}
_UNSEEN = frozenset({"unavailable", "blocked"})


@dataclass(frozen=True)
class Change:
    """One cell that differs. facts: (path, old, new). expected: an expectation of the new run covers the failure."""

    place: Address
    kind: str
    old: str
    new: str
    reason: str = ""
    finding: str = ""
    facts: tuple[tuple[str, Any, Any], ...] = ()
    expected: bool = False
    remade: bool = False

    @property
    def structural(self) -> bool:
        """More than a text that reads differently or a guard more or less."""
        if self.old != self.new:
            return self.kind not in ("new", "gone")
        return self.strength == 2

    @property
    def strength(self) -> int:
        return max((_strength(path) for path, _, _ in self.facts), default=0)

    def said(self, most: int = 3) -> str:
        """`pass → fail: 2 kernels, contract allows 1` or `kernels 1 → 2`."""
        parts = []
        if self.old != self.new:
            parts.append(f"{self.old or 'absent'} → {self.new or 'absent'}" + (f": {self.reason}" if self.reason else ""))
        ordered = sorted(self.facts, key=lambda fact: (not _worse(*fact), -_strength(fact[0])))
        for path, old, new in ordered[:most]:
            parts.append(f"{sanitize.line(path, 60)} {facts.brief(old)} → {facts.brief(new)}")
        if len(self.facts) > most:
            parts.append(f"and {len(self.facts) - most} more facts")
        return "; ".join(parts)


@dataclass(frozen=True)
class Row:
    """All that moved in one compile, as one row: the first stage that moved, and the stage that matters most."""

    micrograph: str
    backend: str
    target: str
    first: Change
    worst: Change
    later: tuple[Change, ...] = ()

    @property
    def kind(self) -> str:
        return self.worst.kind

    @property
    def fails(self) -> bool:
        """A regression that no expectation covers, of a micrograph that is still the same."""
        return self.kind == "regressed" and not self.worst.expected and not self.worst.remade

    def said(self) -> str:
        if self.worst is self.first:
            return self.first.said()
        return f"{self.first.said(2)}; then {self.worst.place.stage}: {self.worst.said(2)}"


@dataclass(frozen=True)
class Group:
    """Rows with one likely cause."""

    kind: str
    backend: str
    stage: str
    cause: str
    rows: tuple[Row, ...]


@dataclass
class Diff:
    old: Loaded
    new: Loaded
    warnings: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    compared: int = 0
    same: int = 0
    cells: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str) -> int:
        return sum(row.kind == kind for row in self.rows)

    @property
    def regressions(self) -> list[Row]:
        return [row for row in self.rows if row.fails]

    def sentence(self) -> str:
        said = [f"{self.count(kind):,} {kind}" for kind in CLASSES if self.count(kind)]
        of = f"of {self.compared:,} cells in both"
        return (", ".join(said) + f" (compiles; {of})") if said else f"nothing moved {of}"


class Swap(NamedTuple):
    """Compare cells of one name in the old run with cells of another in the new: `inductor:torch_tensorrt`."""

    old: str
    new: str

    @classmethod
    def parse(cls, text: str) -> Swap:
        old, _, new = text.partition(":")
        return cls(old, new or old)


def compare(old: Loaded, new: Loaded, backend: Swap | None = None, target: Swap | None = None) -> Diff:
    with no_collection():
        return _compare(old, new, backend, target)


def _compare(old: Loaded, new: Loaded, backend: Swap | None, target: Swap | None) -> Diff:
    diff = Diff(old, new, [*old.problems[:20], *new.problems[:20], *_incomparable(old, new)])
    were, are = _columns(old), _columns(new)
    backend = backend or _only_swap({b for b, _ in were}, {b for b, _ in are}, "backend", diff.warnings)
    target = target or _only_swap({t for _, t in were}, {t for _, t in are}, "target", diff.warnings)
    before = _placed(old, backend and backend.old, target and target.old, None, None)
    after = _placed(new, backend and backend.new, target and target.new, backend and backend.old, target and target.old)
    diff.compared = len(before.keys() & after.keys())
    if not diff.compared:
        diff.warnings.append("the two runs have no cell in common: give --backend OLD:NEW or --target OLD:NEW to compare different ones")
    compiles: dict[tuple[str, str, str], list[Change]] = defaultdict(list)
    remade: set[str] = set()
    for place in before.keys() | after.keys():
        a, b = before.get(place), after.get(place)
        change = _change(place, a, b)
        if change is None:
            diff.same += a is not None and b is not None
            continue
        if change.remade:
            remade.add(place.micrograph)
        compiles[place.compile].append(change)
    if remade:
        diff.warnings.append(_remade(remade))
    diff.rows = sorted((_row(changes) for changes in compiles.values()), key=_row_order)
    diff.cells = {kind: sum(change.kind == kind for changes in compiles.values() for change in changes) for kind in CLASSES}
    diff.groups = _groups(diff.rows)
    return diff


# ------------------------------------------------------------------------------------------- a cell


def _change(place: Address, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Change | None:
    if (
        old is not None
        and new is not None
        and old.get("verdict") == new.get("verdict")
        and old.get("observation") == new.get("observation")
        and old.get("findings") == new.get("findings")
    ):
        return None
    was, now = verdict(old) if old is not None else "", verdict(new) if new is not None else ""
    reason, finding = _why(new if new is not None else {})
    seen_before, seen_after = old is not None and was not in _UNSEEN, new is not None and now not in _UNSEEN
    if not seen_before and not seen_after:
        return None if (old is None) == (new is None) else Change(place, "new" if old is None else "gone", was, now, reason)
    if not seen_before or not seen_after:
        # Blocked or unavailable on one side: nothing to compare, but a failure that comes into sight is worth its name.
        return Change(place, "new" if not seen_before else "gone", was, now, reason, finding)
    assert old is not None and new is not None
    moved = (*_other_findings(old, new, was, now), *facts.changes(mapping(old.get("observation")), mapping(new.get("observation"))))
    remade = bool(old.get("micrograph") and new.get("micrograph") and old["micrograph"] != new["micrograph"])
    kind = _kind(was, now, moved)
    if kind is None:
        return None
    return Change(place, kind, was, now, reason if was != now else "", finding if was != now else "", moved, now == "xfail", remade)


def _other_findings(old: Mapping[str, Any], new: Mapping[str, Any], was: str, now: str) -> Iterator[tuple[str, Any, Any]]:
    """It failed and fails, but for another reason. Details differ from run to run, kinds and checks do not."""
    before, after = (sorted({f"{check} {kind}" for kind, check, _ in findings(line)}) for line in (old, new))
    if was == now and before != after:
        yield "findings", before, after


def _kind(was: str, now: str, moved: Iterable[tuple[str, Any, Any]]) -> str | None:
    before, after = _BAD.get(was), _BAD.get(now)
    if before is not None and after is not None and before != after:
        return "regressed" if after > before else "fixed" if after == 0 else "moved"
    strong = [fact for fact in moved if not facts.weak(fact[0])]
    if any(_worse(*fact) for fact in strong):
        return "regressed"
    if strong or was != now:
        return "moved"
    return "reworded" if moved else None


def _strength(path: str) -> int:
    """2: what a compiler did; 1: what every version changes a little; 0: text that reads differently."""
    return 0 if facts.weak(path) else 1 if path.split(".")[0] in _RESTLESS else 2


def _worse(path: str, old: Any, new: Any) -> bool:
    """Did a number that has a direction go the wrong way? In a table of counts an absent entry is zero; a whole fact that is
    absent is not known."""
    way = facts.direction(path)
    if not way or facts.weak(path) or ((old is None or new is None) and "." not in path):
        return False
    before, after = facts.number(old) if old is not None else 0.0, facts.number(new) if new is not None else 0.0
    return before is not None and after is not None and (after - before) * way > 0


def _why(line: Mapping[str, Any]) -> tuple[str, str]:
    found = findings(line)
    return sanitize.line(line.get("reason"), 200), f"{found[0][1]} {found[0][0]}" if found else ""


# ------------------------------------------------------------------------------------------- a compile

_IMPORTANCE = {kind: rank for rank, kind in enumerate(CLASSES)}


def _row(changes: list[Change]) -> Row:
    """The first stage with a real movement; text that only reads differently does not move a stage."""
    changes.sort(key=lambda change: stage_rank(change.place.stage))
    real = [change for change in changes if change.kind != "reworded"] or changes
    first = next((change for change in real if change.structural), real[0])
    worst = min(real, key=lambda change: (_IMPORTANCE[change.kind], stage_rank(change.place.stage)))
    if worst.kind in ("new", "gone"):
        worst = first
    micrograph, backend, target = first.place.compile
    return Row(micrograph, backend, target, first, worst, tuple(change for change in real if change is not first))


def _row_order(row: Row) -> tuple[Any, ...]:
    return (_IMPORTANCE[row.kind], row.backend, stage_rank(row.first.place.stage), row.micrograph, row.target)


# -------------------------------------------------------------------------------------------- a cause


def _groups(rows: Iterable[Row]) -> list[Group]:
    """Rows whose first stage moved in the same way have one likely cause."""
    found: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.kind, row.backend, row.first.place.stage, _cause(row)].append(row)
    groups = [Group(*key, tuple(members)) for key, members in found.items()]
    return sorted(
        groups, key=lambda group: (_IMPORTANCE[group.kind], -len(group.rows), group.backend, stage_rank(group.stage), group.cause)
    )


def _cause(row: Row) -> str:
    cause = _one_cause(row.first)
    if row.worst is row.first or row.worst.kind in ("new", "gone"):
        return cause
    return f"{cause}; then {row.worst.place.stage}: {_one_cause(row.worst)}"


def _one_cause(change: Change) -> str:
    if change.remade:
        return "the micrograph itself was changed"
    if change.kind in ("new", "gone"):
        seen, unseen = (change.new, change.old) if change.kind == "new" else (change.old, change.new)
        return f"{unseen or 'not recorded'} → {seen}" if change.kind == "new" else f"{seen} → {unseen or 'not recorded'}"
    if change.old != change.new:
        return f"{change.old} → {change.new}" + (f" ({change.finding})" if change.finding else "")
    paths = list(dict.fromkeys(_direction(*fact) for fact in change.facts if _strength(fact[0]) == change.strength))
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _direction(path: str, old: Any, new: Any) -> str:
    path = sanitize.line(path, 60)
    if old is None:
        return f"{path} appeared"
    if new is None:
        return f"{path} went away"
    before, after = facts.number(old), facts.number(new)
    if before is None or after is None or before == after:
        return f"{path} changed"
    return f"{path} grew" if after > before else f"{path} shrank"


# -------------------------------------------------------------------------------------------- the runs


def _incomparable(old: Loaded, new: Loaded) -> Iterator[str]:
    if old.suite != new.suite:
        revisions = f"{old.suite or 'unknown'} → {new.suite or 'unknown'}"
        yield f"other suite revision ({revisions}): a check or contract may have moved, not the compiler"
    if old.expectations != new.expectations:
        yield "other expectations: xfail and xpass may differ for that reason alone"
    for what, a, b in (("machine", old.machine, new.machine), ("schema", old.header.get("schema"), new.header.get("schema"))):
        if a != b:
            yield f"other {what}: {sanitize.name(a) or 'unknown'} → {sanitize.name(b) or 'unknown'}"


def _remade(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{len(names)} micrographs were changed between the runs, so what moved there is not the compiler's alone: {shown}"


def _columns(run: Loaded) -> set[tuple[str, str]]:
    return {place.column for name in run.cells if (place := address(name)) is not None}


def _only_swap(before: set[str], after: set[str], part: str, warnings: list[str]) -> Swap | None:
    """Two runs of one backend (or target) each, and not the same: compare those."""
    if len(before) == len(after) == 1 and before != after:
        swap = Swap(before.pop(), after.pop())
        warnings.append(f"compared across {part}s: {swap.old} → {swap.new}")
        return swap
    return None


def _placed(
    run: Loaded, backend: str | None, target: str | None, as_backend: str | None, as_target: str | None
) -> dict[Address, Mapping[str, Any]]:
    found = {}
    for name, line in run.cells.items():
        place = address(name)
        if place is None or (backend and place.backend != backend) or (target and place.target != target):
            continue
        if as_backend or as_target:
            place = place._replace(backend=as_backend or place.backend, target=as_target or place.target)
        found[place] = line
    return found
