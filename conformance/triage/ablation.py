"""Which step of a stage? Steps are left out one by one; the smallest set whose absence cures the subject is the
culprit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from conformance.errors import few
from conformance.reduce import ddmin
from conformance.triage.culprit import Culprit
from conformance.triage.hold import Hold
from conformance.triage.runs import Runs
from conformance.triage.subject import Subject

FEW = 4  # names of steps that are listed where none is at fault alone


@dataclass(frozen=True)
class Step:
    """A step of a compiler that can be left out (`key`) or changed by a setting. `suspicion`: those with more are
    tried first."""

    kind: str
    key: str
    name: str
    graph: int = 0
    detail: str = ""
    settings: tuple[tuple[str, object], ...] = ()
    suspicion: int = field(default=0, compare=False)

    def by_name(self) -> Step:
        """The same step in another program, where its number is another."""
        return replace(self, key=f"{self.kind} {self.name}") if " " in self.key else self


@dataclass
class Ablation:
    """Leaves steps out of the compiles of a subject that are held at `hold`, where it fails."""

    runs: Runs
    subject: Subject
    hold: Hold
    tried: int = 0

    def cures(self, *groups: Sequence[Step]) -> list[bool]:
        """Is the subject right without each of these groups of steps? No, once the time for this is used up."""
        if self.runs.late():
            return [False] * len(groups)
        self.tried += len(groups)
        return [ending.right for ending in self.runs(self.subject, *(self.without(group) for group in groups))]

    def without(self, steps: Iterable[Step]) -> Hold:
        hold = self.hold
        for step in steps:
            hold = hold.without(step.key) if step.key else hold
            hold = hold.having(dict(step.settings))
        return hold

    def single(self, steps: Sequence[Step], at_a_time: int = 2, most: int = 12) -> Step | None:
        """The first step, the most suspicious first, whose absence alone cures the subject."""
        ranked = sorted(steps, key=lambda step: -step.suspicion)[:most]
        for start in range(0, len(ranked), at_a_time):
            some = ranked[start : start + at_a_time]
            for step, cured in zip(some, self.cures(*[[step] for step in some]), strict=True):
                if cured:
                    return step
        return None

    def named(self, kind: str, names: Sequence[str]) -> Culprit:
        """The one of these steps of a kind without which the subject is right, as the culprit."""
        steps = [Step(kind, f"{kind} {name}", name) for name in names]
        step = self.single(steps, self.runs.workers, len(steps))
        if step is None:
            return Culprit(
                kind, "not found", f"no single one of {len(steps)} cures it by its absence: {few(names, FEW)}"
            )
        return Culprit(kind, step.name, "the script is right without it", [step.name], steps=[step])

    def smallest(self, steps: Sequence[Step], most: int = 30) -> list[Step]:
        """The smallest set of steps whose absence cures the subject; none where the absence of all does not."""
        if not steps or not self.cures(steps)[0]:
            return []
        return ddmin(steps, lambda groups: self.cures(*groups), most)
