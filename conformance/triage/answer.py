"""What triage says of a subject."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.stage import Stage
from conformance.triage.culprit import Culprit
from conformance.triage.ending import Ending
from conformance.triage.ladder import Climb

RIGHT, IN_EAGER, FLAKY, FOUND, UNDECIDED = "right", "wrong in eager", "flaky", "found", "undecided"


@dataclass
class Answer:
    """verdict    one of the words above; found: stage and culprit are named; undecided: it fails, nobody knows where
    given      how the program ends as it is
    unwritten  why there is no repro
    """

    subject: str
    verdict: str
    given: Ending
    stage: Stage | None = None
    kind: str = ""
    detail: str = ""
    culprit: Culprit | None = None
    climb: Climb | None = None
    notes: list[str] = field(default_factory=list)
    reduced: str = ""
    nodes: tuple[int, int] | None = None
    repro: Path | None = None
    issue: Path | None = None
    verified: str = ""
    unwritten: str = ""
    first_bad: str = ""
    runs: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.verdict != RIGHT

    def lines(self) -> list[str]:
        """The answer first, in few lines."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        took = f"{sum(self.seconds.values()):.0f} s, {self.runs} runs, {versions}"
        if self.verdict == RIGHT:
            return [f"nothing fails: {self.subject} is right ({self.detail or self.given.told()})", took]
        if self.verdict == IN_EAGER:
            return [f"wrong in eager: {self.subject} fails without torch.compile, too: {self.detail}", took]
        if self.verdict == FLAKY:
            return [f"flaky: {self.subject} fails only sometimes: {self.detail}", took]
        found = {"stage": str(self.stage) if self.stage else "not found", "culprit": str(self.culprit or "not found")}
        found |= {"also": self.culprit.also} if self.culprit is not None and self.culprit.also else {}
        found |= {"failure": f"{self.kind.replace('_', ' ')}: {self.detail}"}
        found |= {"first bad": self.first_bad} if self.first_bad else {}
        found["repro"] = f"{self.repro} ({self.verified})" if self.repro else f"none: {self.unwritten}"
        found |= {"reduced": self.reduced} if self.reduced else {}
        found |= {"issue": str(self.issue)} if self.issue else {}
        found |= {"note": self.notes[0]} if self.notes and self.notes[0] != self.unwritten else {}
        width = max(map(len, found))
        return [f"{name:{width}}  {' '.join(text.split())[:400]}" for name, text in found.items()] + [took]

    def evidence(self) -> list[str]:
        """What the answer rests on."""
        rungs = self.climb.lines() if self.climb is not None else []
        return [*rungs, *self.notes, *(f"{step}: {seconds:.1f} s" for step, seconds in self.seconds.items())]

    def to_json(self) -> dict[str, Any]:
        culprit = self.culprit
        return {
            "subject": self.subject,
            "verdict": self.verdict,
            "stage": self.stage.value if self.stage else None,
            "culprit": {"what": culprit.what, "name": culprit.name, "why": culprit.why} if culprit else None,
            "kind": self.kind,
            "detail": self.detail,
            "exit": self.given.code,
            "rungs": {rung.name: self.climb.state(rung.name) for rung in self.climb.rungs} if self.climb else {},
            "first_bad": self.first_bad,
            "repro": str(self.repro) if self.repro else None,
            "verified": self.verified,
            "unwritten": self.unwritten,
            "issue": str(self.issue) if self.issue else None,
            "notes": self.notes,
            "runs": self.runs,
            "seconds": {step: round(seconds, 1) for step, seconds in self.seconds.items()},
            "versions": self.versions,
        }
