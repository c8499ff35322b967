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

    facts   small and comparable: counts, names, digests. They go into the record and are what `diff` compares.
    texts   long evidence: graphs, sources, guards. They are kept beside the record, by digest.
    verdict the backend's own word, where it has one: `fallback`, `unsupported`, `unavailable`, `error`; with a reason.
    findings what the backend or the workbench saw while observing, beyond what checks conclude from the facts.
    live    objects for the triage ladder; never written.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    reason: str = ""
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    live: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def says(cls, verdict: Verdict, reason: str, **facts: Any) -> Observation:
        return cls(facts=facts, verdict=verdict, reason=reason)


@dataclass
class Trace:
    micrograph: str
    backend: str
    target: str
    observations: dict[Stage, Observation] = field(default_factory=dict)

    def __getitem__(self, stage: Stage) -> Observation:
        return self.observations[stage]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
