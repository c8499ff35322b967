"""Which stage? The subject is run with every compile held at one rung after the other; the first at which it fails
names the stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.stage import Stage
from conformance.triage.ending import Ending
from conformance.triage.hold import Hold
from conformance.triage.runs import Runs
from conformance.triage.subject import Subject


@dataclass(frozen=True)
class Rung:
    """One rung of a compiler's ladder. `stage`: at fault where this is the first rung that fails. `costly`: code is
    generated for it, so that it is climbed only if the cheaper ones are right."""

    name: str
    stage: Stage | None
    what: str
    costly: bool = False


RIGHT, FAILS, OTHER = "right", "fails", "fails in another way"


@dataclass
class Climb:
    """What was seen at each rung."""

    given: Ending
    rungs: Sequence[Rung]
    endings: dict[str, Ending] = field(default_factory=dict)

    def state(self, name: str) -> str:
        """right, fails like the program as it is, or in another way, which says nothing of it; "" where it was not
        climbed."""
        ending = self.endings.get(name)
        if ending is None:
            return ""
        if ending.right:
            return RIGHT
        return FAILS if ending.like(self.given) and not _of_the_runner(ending, self.given) else OTHER

    @property
    def last_right(self) -> Rung | None:
        """The highest rung at which the program is right."""
        return next((rung for rung in reversed(self.rungs) if self.state(rung.name) == RIGHT), None)

    @property
    def first_failing(self) -> Rung | None:
        """The rung above the highest right one, at which the program fails as it does when it is whole."""
        right = self.last_right
        above = self.rungs[self.rungs.index(right) + 1 :] if right is not None else self.rungs
        return next((rung for rung in above if self.state(rung.name) == FAILS), None)

    @property
    def unknown(self) -> list[Rung]:
        """Rungs between the two, at which the program fails in another way: the stage may be one of theirs."""
        right, failing = self.last_right, self.first_failing
        low = self.rungs.index(right) + 1 if right is not None else 0
        high = self.rungs.index(failing) if failing is not None else len(self.rungs)
        return [rung for rung in self.rungs[low:high] if self.state(rung.name) == OTHER]

    def lines(self) -> list[str]:
        """For people: rung, what it means, what was seen."""
        found = []
        for rung in self.rungs:
            if state := self.state(rung.name):
                why = f": {self.endings[rung.name].told()}" if state == OTHER else ""
                found.append(f"{rung.name:11} {state}{why}  ({rung.what})")
        return found


def climb(runs: Runs, subject: Subject, rungs: Sequence[Rung], given: Ending) -> Climb:
    """Run the subject at the cheap rungs; at the costly ones only if it is right at the highest cheap one. Where the
    lowest compiled rung and the highest cheap one fail, nothing between them can change the answer; where the two
    lowest costly ones fail, nothing above them."""
    found = Climb(given, rungs)

    def look(*some: Rung) -> None:
        for rung, ending in zip(some, runs(subject, *(Hold(rung.name) for rung in some)), strict=True):
            found.endings[rung.name] = ending

    eager, lowest, *between, highest = [rung for rung in rungs if not rung.costly]
    look(eager, lowest)
    if found.state(eager.name) == FAILS:
        return found
    if found.state(lowest.name) == FAILS:
        look(highest)
        if found.state(highest.name) == FAILS:
            return found
    look(*between, highest)
    failing = found.first_failing
    if failing is None or failing.costly:
        costly = [rung for rung in rungs if rung.costly]
        look(*costly[:2])
        if any(found.state(rung.name) != FAILS for rung in costly[:2]):
            look(*costly[2:])
    return found


def _of_the_runner(ending: Ending, given: Ending) -> bool:
    """Is it our way of running a graph that failed, where the program as it is does not raise?"""
    return bool(ending.named("runner")) and not given.error
