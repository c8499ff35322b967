"""What one compile showed: a trace of seven observations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from conformance.stage import Stage
from conformance.verdict import Finding, Verdict


@dataclass
class Observation:
    """What one stage showed.

    facts     small and comparable: counts, names, digests. They go into the record and are what `diff` compares.
    texts     long evidence: graphs, sources, guards. They are kept beside the record, by digest.
    verdict   the backend's own word, where it has one: `fallback`, `unsupported`, `unavailable`; with a reason.
    findings  what was found wrong while measuring: differences from eager, crashes. Checks find the rest in the facts.
    seconds   how long the stage took, measured where it runs
    """

    facts: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    reason: str = ""
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def says(cls, verdict: Verdict, reason: str, **facts: Any) -> Observation:
        return cls(facts=facts, verdict=verdict, reason=reason)

    def take_back(self) -> str:
        """That a stage could not be observed, since a hook was not called, excuses neither a crash nor a wrong result there. Returns the
        reason."""
        if self.verdict is not Verdict.UNAVAILABLE:
            return ""
        excuse, self.verdict, self.reason = self.reason, None, ""
        return excuse

    def to_json(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "texts": self.texts,
            "verdict": self.verdict.value if self.verdict else None,
            "reason": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observation:
        verdict = Verdict(data["verdict"]) if data["verdict"] else None
        findings = [Finding.from_json(finding) for finding in data["findings"]]
        return cls(data["facts"], data["texts"], verdict, data["reason"], findings, data["seconds"])


@dataclass
class Trace:
    """`stages` were asked for; `unavailable` are those that cannot be observed here, with the reason."""

    micrograph: str
    backend: str
    target: str
    stages: tuple[Stage, ...] = ()
    observations: dict[Stage, Observation] = field(default_factory=dict)
    unavailable: dict[Stage, str] = field(default_factory=dict)

    def __getitem__(self, stage: Stage) -> Observation:
        return self.observations[stage]

    def at(self, stage: Stage) -> Observation:
        """The observation of a stage, made if there is none yet."""
        return self.observations.setdefault(stage, Observation())

    def died(self, stage: Stage, how: Finding) -> None:
        """The process ended at this stage: that it could not be observed is no excuse."""
        self.unavailable.pop(stage, None)
        seen = self.at(stage)
        seen.take_back()
        seen.findings.append(how)

    def to_json(self) -> dict[str, Any]:
        return {
            "micrograph": self.micrograph,
            "backend": self.backend,
            "target": self.target,
            "stages": [stage.value for stage in self.stages],
            "observations": {stage.value: seen.to_json() for stage, seen in self.observations.items()},
            "unavailable": {stage.value: reason for stage, reason in self.unavailable.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trace:
        return cls(
            data["micrograph"],
            data["backend"],
            data["target"],
            tuple(Stage(name) for name in data["stages"]),
            {Stage(name): Observation.from_json(seen) for name, seen in data["observations"].items()},
            {Stage(name): reason for name, reason in data["unavailable"].items()},
        )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
