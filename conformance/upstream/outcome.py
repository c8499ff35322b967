"""What became of a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformance.upstream.failure import Failure, normalized

COLLECTION = "(collection)"  # stands in place of a test's name for what became of the file as a whole
FAILED = ("failed", "crashed", "hung")


@dataclass(frozen=True)
class Answer:
    """What the rungs say: the lowest at which the test fails in the same way, and what happened at each."""

    rung: str  # empty where none is
    stage: str
    tried: dict[str, str]
    alone: str  # what the test does when it is run again as it is
    direct: bool = False  # it enters no layer of the compiler: no rung can take away what it calls itself

    @property
    def said(self) -> str:
        if self.direct:
            told = "enters no layer of the compiler that a rung could take away"
            return f"fails in {self.stage}, which it calls itself" if self.stage else told
        if self.rung:
            return f"fails from {self.stage} on" if self.stage else "fails without the compiler"
        return "passes when it is run alone" if self.alone.startswith("passes") else "no rung tells where"


@dataclass
class Outcome:
    """The end of one test, or of a file's collection.

    outcome is one of passed, stopped (a GPU would have to go on), skipped, xfailed, xpassed, failed, crashed, hung, and
    unavailable (not run, since upstream or the map says what is missing).
    """

    test: str
    outcome: str
    line: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    answer: Answer | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def died(test: str, event: dict[str, Any]) -> Outcome:
    """The outcome of a test whose process is gone."""
    outcome, cause = ("hung", "timeout") if event["hung"] else ("crashed", "crash")
    return Outcome(test, outcome, event["how"], failure=Failure(cause, normalized(event["how"])))
