"""Judge: what a trace shows, held against the contract, the baseline and what is expected. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from conformance import checks
from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.checks.measured import LADDER, LOST_SIGHT, UNEXPLAINED_BLOCK
from conformance.expectations import Expectations
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.trace import Observation, Trace
from conformance.verdict import Finding, Kind, Verdict


@dataclass
class Result:
    """What is recorded of one cell."""

    cell: Cell
    verdict: Verdict
    reason: str = ""
    findings: list[Finding] = field(default_factory=list)
    observation: Observation = field(default_factory=Observation)
    url: str = ""
    micrograph: str = ""
    upstream: tuple[str, ...] = ()
    title: str = ""  # what goes wrong, of a micrograph that stands for a public report
    cause: Cell | None = None  # of a blocked cell: the cell that blocks it
    unexpected: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record's line. Long texts are not in it: the record's writer stores them beside it."""
        line: dict[str, Any] = {
            "cell": str(self.cell),
            "verdict": self.verdict.value,
            "reason": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "observation": self.observation.facts,
            "seconds": round(self.observation.seconds, 3),
            "micrograph": self.micrograph,
            "unexpected": self.unexpected,
        }
        cause = str(self.cause) if self.cause else ""
        own = self.observation.verdict
        said = {"verdict": own.value, "reason": self.observation.reason} if own else {}
        extra = {"said": said, "url": self.url, "upstream": list(self.upstream), "title": self.title, "cause": cause}
        return line | {key: value for key, value in extra.items() if value}


# ------------------------------------------------------------------------------------------- verdict policy


@dataclass(frozen=True)
class Rule:
    """One row of the verdict policy: the first row that applies decides."""

    when: str
    applies: Callable[[Observation, list[Finding]], bool]
    verdict: Callable[[Observation], Verdict]
    reason: str = ""


def _has(kind: Kind) -> Callable[[Observation, list[Finding]], bool]:
    return lambda seen, findings: any(finding.kind is kind for finding in findings)


def _is(verdict: Verdict) -> Callable[[Observation], Verdict]:
    return lambda seen: verdict


def _has_no_program(seen: Observation, findings: list[Finding]) -> bool:
    """Of a program of which earlier stages rightly left nothing to compute, none is generated."""
    return seen.facts.get("programs") == 0 and not seen.facts.get("nothing_left")


UNCOMPILED = "no program was generated: what ran was not compiled"
POLICY = (
    Rule(
        "the backend says that it cannot",
        lambda s, f: s.verdict in (Verdict.UNSUPPORTED, Verdict.UNAVAILABLE),
        lambda s: s.verdict or Verdict.PASS,
    ),
    Rule("a crash was found", _has(Kind.CRASH), _is(Verdict.ERROR)),
    Rule("a timeout was found", _has(Kind.TIMEOUT), _is(Verdict.TIMEOUT)),
    Rule("anything else was found, compiled or not", lambda s, f: bool(f), _is(Verdict.FAIL)),
    Rule("the backend says how it ended", lambda s, f: s.verdict is not None, lambda s: s.verdict or Verdict.PASS),
    Rule("no program was generated, and one was needed", _has_no_program, _is(Verdict.FALLBACK), UNCOMPILED),
    Rule("nothing is wrong", lambda s, f: True, _is(Verdict.PASS)),
)


def verdict_of(seen: Observation, findings: list[Finding]) -> tuple[Verdict, str]:
    """The verdict by the policy, and its reason in one line."""
    rule = next(rule for rule in POLICY if rule.applies(seen, findings))
    reason = seen.reason or rule.reason or "; ".join(finding.detail for finding in findings[:2])
    return rule.verdict(seen), reason


def expected(
    known: Expectations, cell: str, verdict: Verdict, reason: str, findings: list[Finding]
) -> tuple[Verdict, str, str]:
    """Verdict, reason and link in the light of what is expected of the cell."""
    verdict, entry = known.judge(cell, verdict, findings)
    if entry is None:
        return verdict, reason, ""
    return verdict, entry.why + (f" ({reason})" if reason else ""), entry.url


def blocked_by(stage: Stage | str, verdict: Verdict | str, reason: str) -> str:
    """Why a cell is blocked: what became of the stage that blocks it."""
    return f"{stage} {verdict}: {reason}"


def is_wrong(trace: Trace, micrograph: type[Micrograph]) -> bool:
    """Does any stage of an unfinished trace show something wrong? Later stages will then be blocked, and need not be measured."""
    for stage, seen in trace.observations.items():
        view = checks.Seen(seen, micrograph, trace.backend, trace.target)
        if seen.verdict not in (None, Verdict.UNAVAILABLE) or seen.findings:
            return True
        if seen.verdict is None and stage not in trace.unavailable and checks.findings(stage, view):
            return True
    return False


# ---------------------------------------------------------------------------------------------------- judge


class Judge:
    """Holds what all judgements share: what is expected, and the recorded runs."""

    def __init__(self, expectations: Expectations, baseline: Baseline | None = None) -> None:
        self.expectations, self.baseline = expectations, baseline

    def results(
        self, trace: Trace, micrograph: type[Micrograph], stages: Collection[Stage] | None = None
    ) -> dict[Stage, Result]:
        """A result for each stage that was asked for. After a stage that failed, later ones are `blocked`."""
        asked = tuple(stage for stage in STAGES if stage in (trace.stages if stages is None else stages))
        found: dict[Stage, Result] = {}
        blocker: Result | None = None
        crashed = any(finding.kind is Kind.CRASH for seen in trace.observations.values() for finding in seen.findings)
        for stage in STAGES:
            cell = Cell(stage, trace.backend, trace.target, trace.micrograph)
            if stage in trace.unavailable:
                found[stage] = self._unavailable(cell, micrograph, trace.unavailable[stage])
            elif blocker is not None:
                found[stage] = self._blocked(cell, micrograph, blocker, reported=blocker.cell.stage in asked)
            elif stage in trace.observations:
                found[stage] = self.result(cell, micrograph, trace[stage], crashed)
                blocker = found[stage] if found[stage].verdict.blocks else None
            else:
                found[stage] = self._unavailable(cell, micrograph, "the examination ended before it came to this stage")
        return {stage: found[stage] for stage in asked}

    def result(self, cell: Cell, micrograph: type[Micrograph], seen: Observation, crashed: bool = False) -> Result:
        """What was observed of one cell, as a verdict. `crashed`: at this stage or another, the compiler or its program did."""
        if seen.verdict is Verdict.UNAVAILABLE:
            return self._unavailable(cell, micrograph, seen.reason, seen)
        findings = list(seen.findings)
        if seen.verdict is None:
            findings += checks.findings(cell.stage, checks.Seen(seen, micrograph, cell.backend, cell.target))
            if self.baseline and not findings:
                findings += self.baseline.findings(cell, micrograph.digest(), seen, crashed)
        verdict, reason = verdict_of(seen, findings)
        verdict, reason, url = expected(self.expectations, str(cell), verdict, reason, findings)
        made = self._made(cell, micrograph, verdict, reason, seen)
        made.findings, made.url = findings, url
        return made

    def died(
        self, stages: Collection[Stage], at: Cell, micrograph: type[Micrograph], timeout: bool, reason: str
    ) -> dict[Stage, Result]:
        """The process that measured the case died while it worked on a stage: that stage's verdict, and every other one is blocked."""
        kind = Kind.TIMEOUT if timeout else Kind.CRASH
        guilty = self.result(at, micrograph, Observation(findings=[Finding(kind, LADDER, reason)], reason=reason))
        results = {at.stage: guilty} if at.stage in stages else {}
        for stage in stages:
            if stage is not at.stage:
                cell = Cell(stage, at.backend, at.target, at.micrograph)
                results[stage] = self._blocked(cell, micrograph, guilty, reported=at.stage in stages)
        return {stage: results[stage] for stage in STAGES if stage in results}

    def unsupported(self, cells: Collection[Cell], micrograph: type[Micrograph], reason: str) -> dict[Stage, Result]:
        """The backend does not do this at all."""
        return {cell.stage: self._made(cell, micrograph, Verdict.UNSUPPORTED, reason) for cell in cells}

    def _unavailable(
        self, cell: Cell, micrograph: type[Micrograph], reason: str, seen: Observation | None = None
    ) -> Result:
        """Not observed. Where the recorded run of the same version did observe it, that is a finding."""
        made = self._made(cell, micrograph, Verdict.UNAVAILABLE, reason, seen)
        if self.baseline and (then := self.baseline.verdict(cell, micrograph.digest())):
            detail = f"could be observed when the same version was recorded ({then}), and now: {reason}"
            made.findings, made.unexpected = [Finding(Kind.UNOBSERVED, LOST_SIGHT, detail)], True
        return made

    def _blocked(self, cell: Cell, micrograph: type[Micrograph], blocker: Result, reported: bool) -> Result:
        """Blocked by an earlier stage. Where that stage was not asked for, nobody else reports its failure: this cell does."""
        if blocker.verdict is Verdict.UNSUPPORTED:
            return self._made(cell, micrograph, Verdict.UNSUPPORTED, blocker.reason)
        reason = blocked_by(blocker.cell.stage, blocker.verdict, blocker.reason)
        made = self._made(cell, micrograph, Verdict.BLOCKED, reason)
        made.cause = blocker.cell
        if not reported and blocker.unexpected:
            detail = f"{blocker.cell} was not asked for, and is {blocker.verdict}: {blocker.reason}"
            made.findings, made.unexpected = [Finding(Kind.UNOBSERVED, UNEXPLAINED_BLOCK, detail)], True
        return made

    def _made(
        self, cell: Cell, micrograph: type[Micrograph], verdict: Verdict, reason: str, seen: Observation | None = None
    ) -> Result:
        made = Result(cell, verdict, reason, observation=seen or Observation(), unexpected=verdict.unexpected)
        made.micrograph, made.upstream = micrograph.digest(), micrograph.upstream
        if micrograph.upstream:
            made.title = micrograph.summary()
        return made
