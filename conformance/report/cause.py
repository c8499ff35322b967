"""The causes of what differs: compiles that differ in the same way at the same first stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.errors import few
from conformance.report import facts
from conformance.report.address import Address
from conformance.report.change import SEVERITY, Change, common_path, direction, fact_name
from conformance.report.facts import BOOKKEEPING, CLASSES, CODE, FIXED
from conformance.report.style import stage_rank

Signature = frozenset[tuple[str, ...]]
COUNTS = {"+": ">", "-": "<"}  # one that appears is one more


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
    signature: Signature
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
        """The text, before it what it led to at a later stage of the example, and after it the reports that it fixes."""
        worst = self.example.worst
        text = self.text if worst is self.example.first else f"{worst.place.stage} {worst.result()} after {self.text}"
        return f"{text} (fixes {', '.join(self.fixes)})" if self.fixes else text

    @property
    def fixes(self) -> list[str]:
        """The reports that are right at a later stage of every one of the compiles, where that is not what its class says."""
        mended = [
            {change.report for change in one.changes if change.rank == FIXED and change is not one.first}
            - {one.worst.report}
            for one in self.compiles
        ]
        return sorted(set().union(*mended) - {""})[:3] if self.rank != FIXED and all(mended) else []

    @property
    def url(self) -> str:
        """Where the report of the failure is; empty where it has none."""
        return self.example.worst.url

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
        changes = [change.with_other_groups() for change in changes]
    if any(change.place.stage == "cache" and change.found_in_cache for change in changes):
        changes = [change.with_fewer_compiles() for change in changes]
    first = next((change for change in changes if change.rank != BOOKKEEPING), changes[0])
    return Compile(place, first, tuple(changes))


# -------------------------------------------------------------------------------------- two changes in one


class Elsewhere:
    """What the changes of a compile do in other compiles, where each of them is the first.

    Two releases differ by many changes, so that a compile may show two that have nothing to do with each other: a copy that
    is no longer made, and a rewrite two stages later that costs a kernel. The second is not the work of the first where
    other compiles have the first and nothing follows, and where others have the second without the first. For a fix, and for a
    failure that has a report, one of the two is enough; but several fixes that all come after one change are its work.
    """

    def __init__(self, compiles: Iterable[Compile]) -> None:
        self.harmless: dict[str, set[Signature]] = defaultdict(set)
        self.alone: dict[tuple[str, str], set[Signature]] = defaultdict(set)
        self.fixes: dict[tuple[str, Signature], int] = defaultdict(int)
        for one in compiles:
            if one.rank == FIXED:
                self.fixes[one.worst.place.stage, one.worst.signature] += 1
            (
                self.harmless[one.first.place.stage]
                if one.rank == CODE
                else self.alone[one.rank, one.first.place.stage]
            ).add(_either_count(one.first.signature))

    def split(self, one: Compile) -> Iterator[Compile]:
        """The compile, or its two parts: what came first and did nothing, and the change that did what its rank says."""
        later = self._later(one)
        if later is None:
            yield one
            return
        at = one.changes.index(later)
        yield Compile(one.place, one.first, one.changes[:at])
        yield from self.split(Compile(one.place, later, one.changes[at:]))

    def _later(self, one: Compile) -> Change | None:
        first, worst = one.first, one.worst
        if one.rank in (CODE, BOOKKEEPING) or worst is first:
            return None
        between = one.changes[one.changes.index(first) + 1 : one.changes.index(worst) + 1]
        own = [change for change in between if self._is_alone(one.rank, change)]
        if first.rank != CODE:
            return worst if worst in own and worst.report else None
        harmless = _holds_one(_either_count(first.signature), self.harmless[first.place.stage])
        if own and (harmless or one.rank == FIXED or own[0].report):
            return own[0]
        single = self.fixes[worst.place.stage, worst.signature] == 1
        return worst if harmless and single and one.rank == FIXED else None

    def _is_alone(self, rank: str, change: Change) -> bool:
        signature, others = _either_count(change.signature), self.alone[rank, change.place.stage]
        if rank == FIXED or change.rank != CODE:
            return change.rank == rank and signature in others
        return _holds_one(signature, others)


def _either_count(signature: Signature) -> Signature:
    """Fewer copies and none any more are the same change, of two micrographs."""
    return frozenset((*path, COUNTS.get(change, change)) for *path, change in signature)


def _holds_one(signature: Signature, others: set[Signature]) -> bool:
    return any(other <= signature for other in others)


# ----------------------------------------------------------------------------------------------- a cause


def causes(compiles: Iterable[Compile]) -> list[Cause]:
    compiles = list(compiles)
    elsewhere = Elsewhere(compiles)
    grouped: dict[tuple[str, ...], list[Compile]] = defaultdict(list)
    for one in (part for whole in compiles for part in elsewhere.split(whole)):
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


def _clusters(compiles: list[Compile]) -> Iterator[tuple[Signature, list[Compile]]]:
    """Compiles by signature. One whose signature holds all of a smaller one's has that cause, and something beside it; but
    where it costs something, what is beside it may be what costs."""
    exact: dict[Signature, list[Compile]] = defaultdict(list)
    for one in compiles:
        exact[_either_count(one.first.signature) if one.rank == CODE else one.first.signature].append(one)
    kept: dict[Signature, list[Compile]] = {}
    for signature in sorted(exact, key=lambda marks: (len(marks), -len(exact[marks]), sorted(marks))):
        inside = [other for other in kept if other < signature and exact[signature][0].rank in (CODE, BOOKKEEPING)]
        home = max(inside, key=lambda other: len(kept[other]), default=signature)
        kept.setdefault(home, []).extend(exact[signature])
    for signature, members in kept.items():
        yield signature, sorted(members, key=lambda one: (one.place.micrograph, one.place))


def _cause_text(signature: Signature, compiles: list[Compile], most: int = 4) -> str:
    first = compiles[0].first
    if first.was is not None and first.now is not None:
        return _transition_text([one.first for one in compiles])
    parts = [
        _mark_text(mark[:-1], mark[-1], compiles)
        for mark in sorted(signature, key=lambda mark: (mark[-1] not in "-+<>", mark))
    ]
    return few(parts, most)


def _transition_text(changes: list[Change]) -> str:
    """`xfail → pass (overfused, wrong_result) pytorch#196468`, with the kinds of all where they have one report."""
    told = sorted({change.transition() for change in changes}, key=lambda text: (-len(text), text))
    report = changes[0].report
    return (
        told[0]
        if report and len({(one.old.verdict, one.new.verdict) for one in changes}) == 1
        else " or ".join(told[:2])
    )


def _mark_text(path: tuple[str, ...], change: str, compiles: list[Compile]) -> str:
    """With the numbers, where they are the same in all of the compiles."""
    found = [
        fact
        for one in compiles
        for fact in one.first.facts
        if common_path(fact.path) == path and change in (direction(fact), COUNTS.get(direction(fact)))
    ]
    values = {(facts.brief(fact.old), facts.brief(fact.new)) for fact in found}
    name = fact_name(path)
    if len(values) == 1:
        ((old, new),) = values
        return f"{name} {old} → {new}"
    ways = {direction(fact) for fact in found}
    return {"+": f"{name} appears", "-": f"{name} goes away", ">": f"more {name}", "<": f"fewer {name}"}.get(
        ways.pop() if len(ways) == 1 else change, f"{name} differs"
    )
