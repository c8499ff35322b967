"""The causes of what differs: compiles that differ in the same way at the same first stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.report import facts
from conformance.report.address import Address
from conformance.report.change import SEVERITY, Change, common_path, fact_name
from conformance.report.facts import BOOKKEEPING, CLASSES, CODE, FIXED
from conformance.report.style import stage_rank


@dataclass(frozen=True)
class Compile:
    """All that differs in one compile. first: the change at the first stage that differs. rank: the worst class."""

    place: Address
    first: Change
    changes: tuple[Change, ...]

    @property
    def worst(self) -> Change:
        return min(self.changes, key=lambda change: (SEVERITY.index(change.rank), stage_rank(change.place.stage)))

    @property
    def rank(self) -> str:
        return self.worst.rank

    @property
    def expected(self) -> bool:
        return self.worst.expected

    def summary(self) -> str:
        first, worst = self.first, self.worst
        return (
            first.summary() if worst is first else f"{first.summary(3)}; then {worst.place.stage}: {worst.summary(2)}"
        )


@dataclass(frozen=True)
class Cause:
    """Compiles that differ in the same way at the same first stage."""

    rank: str
    stage: str
    text: str
    signature: frozenset[tuple[str, ...]]
    compiles: tuple[Compile, ...]

    @property
    def example(self) -> Compile:
        """The compile that shows it with the least beside it."""
        return min(self.compiles, key=lambda one: (not one.first.texts(), len(one.first.facts), one.place))

    @property
    def columns(self) -> list[str]:
        return sorted({"/".join(one.place.column) for one in self.compiles})

    @property
    def micrographs(self) -> list[str]:
        return sorted({one.place.micrograph for one in self.compiles})

    @property
    def fails(self) -> bool:
        """Is there one that no expectation covers?"""
        return any(not one.expected for one in self.compiles)

    @property
    def otherwise(self) -> bool:
        """Did every one of the compiles fail before, in another way? It costs a user less than a new failure."""
        return all(one.worst.was is not None and bool(one.worst.was.rank) for one in self.compiles)

    @property
    def headline(self) -> str:
        """The text, and before it what it led to at a later stage of the example."""
        worst = self.example.worst
        return self.text if worst is self.example.first else f"{worst.place.stage} {worst.result()} after {self.text}"

    def then(self) -> str:
        """What followed at later stages, in how many of the compiles: `fusion kernels 1 → 2 (2 of 3)`"""
        later: dict[str, int] = defaultdict(int)
        for one in self.compiles:
            for change in one.changes:
                if change is not one.first and change.rank not in (CODE, BOOKKEEPING):
                    later[f"{change.place.stage} {change.result()}"] += 1
        shown = [
            f"{text} ({count} of {len(self.compiles)})"
            for text, count in sorted(later.items(), key=lambda item: -item[1])
        ]
        return "; ".join(shown[:2]) + (f" and {len(shown) - 2} more" if len(shown) > 2 else "")


def moved(place: Address, changes: list[Change]) -> Compile:
    """The first stage with a real movement: bookkeeping alone does not make a stage the first."""
    changes.sort(key=lambda change: stage_rank(change.place.stage))
    if any(change.place.stage == "fusion" and change.rank != BOOKKEEPING for change in changes):
        changes = [change.with_other_loops() for change in changes]
    first = next((change for change in changes if change.rank != BOOKKEEPING), changes[0])
    return Compile(place, first, tuple(changes))


# ----------------------------------------------------------------------------------------------- a cause


def causes(compiles: Iterable[Compile]) -> list[Cause]:
    grouped: dict[tuple[str, ...], list[Compile]] = defaultdict(list)
    for one in compiles:
        compiler = repr(sorted(one.first.new.run.versions(one.place.backend).items()))
        grouped[one.rank, one.first.place.stage, compiler].append(one)
    causes = [
        Cause(rank, stage, _cause_text(signature, members), signature, tuple(members))
        for (rank, stage, _), found in grouped.items()
        for signature, members in _clusters(found)
    ]
    return sorted(causes, key=_order)


def _order(cause: Cause) -> tuple[int, bool, int, tuple[int, str], str]:
    """The costliest class first; in it new failures before those that were failures already, then the most compiles."""
    otherwise = cause.otherwise and cause.rank != FIXED
    return CLASSES.index(cause.rank), otherwise, -len(cause.compiles), stage_rank(cause.stage), cause.text


def _clusters(compiles: list[Compile]) -> Iterator[tuple[frozenset[tuple[str, ...]], list[Compile]]]:
    """Compiles by signature. One whose signature holds all of a smaller one's has that cause, and something beside
    it."""
    exact: dict[frozenset[tuple[str, ...]], list[Compile]] = defaultdict(list)
    for one in compiles:
        exact[one.first.signature].append(one)
    kept: dict[frozenset[tuple[str, ...]], list[Compile]] = {}
    for signature in sorted(exact, key=lambda marks: (len(marks), -len(exact[marks]), sorted(marks))):
        inside = [other for other in kept if other < signature]
        home = max(inside, key=lambda other: len(kept[other]), default=signature)
        kept.setdefault(home, []).extend(exact[signature])
    for signature, members in kept.items():
        yield signature, sorted(members, key=lambda one: (one.place.micrograph, one.place))


def _cause_text(signature: frozenset[tuple[str, ...]], compiles: list[Compile], most: int = 4) -> str:
    first = compiles[0].first
    if first.was is not None and first.now is not None:
        return " or ".join(sorted({one.first.transition() for one in compiles})[:2])
    parts = [
        _mark_text(mark[:-1], mark[-1], compiles)
        for mark in sorted(signature, key=lambda mark: (mark[-1] not in "-+", mark))
    ]
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _mark_text(path: tuple[str, ...], change: str, compiles: list[Compile]) -> str:
    """With the numbers, where they are the same in all of the compiles."""
    values = {
        (facts.brief(fact.old), facts.brief(fact.new))
        for one in compiles
        for fact in one.first.telling
        if common_path(fact.path) == path and fact.change == change
    }
    name = fact_name(path)
    if len(values) == 1:
        ((old, new),) = values
        return f"{name} {old} → {new}"
    return {"+": f"{name} appears", "-": f"{name} goes away", ">": f"more {name}", "<": f"fewer {name}"}.get(
        change, f"{name} differs"
    )
