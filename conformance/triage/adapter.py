"""What triage needs of a compiler. A backend gives one (`backends.base.Triaged`)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from conformance.stage import Stage
from conformance.triage.culprit import Culprit
from conformance.triage.hold import Hold, Journal
from conformance.triage.ladder import Climb, Rung
from conformance.triage.runs import Runs
from conformance.triage.subject import Subject


class Adapter:
    """The ladder of a compiler, whose `entry` a script calls. `rungs`, in order: the first is eager, the last the program
    as it is."""

    entry: str = "torch.compile"
    rungs: tuple[Rung, ...] = ()

    def prepare(self) -> None:
        """Import, in the process that all runs are forked from, what a first compile needs; compile nothing."""

    def prelude(self) -> str:
        """Lines of Python that a script needs before it where it runs alone; none, where the compiler is installed."""
        return ""

    def hold(self, held: Hold, journal: Journal) -> AbstractContextManager[None]:
        """Inside, every compile of the process is held, and the way that it takes written down."""
        return nullcontext()

    def stage(self, runs: Runs, subject: Subject, climb: Climb) -> tuple[Stage | None, str]:
        """The stage at fault, and a note where it is not simply that of the first failing rung."""
        rung = climb.first_failing
        return (rung.stage if rung is not None else None), ""

    def culprit(self, runs: Runs, subject: Subject, climb: Climb, stage: Stage) -> Culprit | None:
        """What is at fault inside the stage."""
        return None

    def cures(self, stage: Stage, culprit: Culprit | None) -> list[tuple[str, ...]]:
        """Ways to make a program right, each some lines of Python that run before it; those are tried in this order."""
        return []
