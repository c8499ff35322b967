"""The lines that a record has for an operator: a cell for each dtype and stage, with the forms that fail."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.checks.measured import OP_ACCEPTED, OP_DIFFERS, OP_ENDED, OP_REFUSED
from conformance.expectations import Expectations
from conformance.ops.call import Key
from conformance.ops.examination import Judged, Task
from conformance.ops.words import FALLBACK, REFUSES, WORDS
from conformance.verdict import Finding, Kind, Verdict

if TYPE_CHECKING:
    from conformance.ops.sweep import Sweep


@dataclass
class Results:
    """All that was learned of a task."""

    sweep: Sweep
    task: Task
    judged: dict[tuple[str, Key], Judged]
    skipped: dict[Key, str]

    def lines(self, expected: Expectations) -> Iterator[dict[str, Any]]:
        """The cells of the task as a record has them."""
        for dtype in self.task.dtypes:
            before: set[Key] = set()
            for rung in self.task.rungs:
                stage = rung.stage.value
                mine = {key: one for (name, key), one in self.judged.items() if name == stage and self._of(key, dtype)}
                yield self._line(stage, dtype, mine, before, expected)
                before |= {key for key, one in mine.items() if one.findings}

    def _of(self, key: Key, dtype: str) -> bool:
        """Calls that eager refuses stand with the first dtype of the task, whatever theirs is."""
        return dtype == (self.task.dtypes[0] if key.form == "errors" else key.dtype)

    def _line(
        self, stage: str, dtype: str, mine: dict[Key, Judged], before: set[Key], expected: Expectations
    ) -> dict[str, Any]:
        cell = self.sweep.cell(stage, self.task.operator, dtype)
        findings = list(_findings(mine))
        verdict, reason = _verdict(mine, findings, before, self._why_nothing(dtype))
        seen = verdict
        verdict, entry = expected.judge(cell, verdict, findings)
        if verdict is Verdict.XPASS and not self.sweep.is_whole:
            verdict, entry = seen, None  # the form that fails was perhaps not asked for
        line: dict[str, Any] = {
            "cell": cell,
            "verdict": verdict.value,
            "reason": reason,
            "findings": [finding.to_json() for finding in findings],
            "observation": self._facts(mine, dtype),
            "seconds": round(sum(one.seconds for one in mine.values()), 3),
            "micrograph": self._digest(),
        }
        if verdict is Verdict.FALLBACK:
            line["unexpected"] = False  # a graph break is how torch.compile handles what it does not capture
        if entry is not None:
            line |= {"url": entry.url}
        return line

    def _facts(self, mine: dict[Key, Judged], dtype: str) -> dict[str, Any]:
        how = Counter(one.how for one in mine.values())
        wrong: dict[str, set[str]] = {}
        for key, one in mine.items():
            for kind, _ in one.findings:
                wrong.setdefault(key.form, set()).add(kind)
        facts: dict[str, Any] = {
            "calls": len(mine),
            "forms": dict(sorted(Counter(key.form for key in mine).items())),
            "how": {word: how[word] for word in WORDS if how[word]},
            "wrong": {form: sorted(kinds) for form, kinds in sorted(wrong.items())},
            "skipped": sum(self._of(key, dtype) for key in self.skipped),
        }
        if ops := sorted({op for key, one in mine.items() if key.form == "plain" for op in one.ops}):
            facts["ops"] = ops
        if unbuilt := sorted({op for one in mine.values() for op in one.unbuilt}):
            facts["unbuilt"] = unbuilt
        if notes := sorted({one.note for one in mine.values() if one.note}):
            facts["notes"] = notes[:5]
        if stages := sorted({one.stage for one in mine.values() if one.stage}):
            facts["at_fault"] = stages
        return facts

    def _why_nothing(self, dtype: str) -> str:
        reasons = [reason for key, reason in self.skipped.items() if self._of(key, dtype)]
        return (
            f"eager takes none of its calls: {reasons[0]}" if reasons else "the database has no sample that can be used"
        )

    def _digest(self) -> str:
        """Facts of two records can be compared where the same was asked for."""
        asked = repr((self.task.forms, self.task.samples))
        return hashlib.sha256(asked.encode()).hexdigest()[:12]


def dead(cell: str, reason: str, expected: Expectations) -> dict[str, Any]:
    """The line of a cell whose process died whenever it was tried, so that nothing else is known of it."""
    finding = Finding(Kind.CRASH, OP_ENDED, reason)
    verdict, entry = expected.judge(cell, Verdict.ERROR, [finding])
    line: dict[str, Any] = {
        "cell": cell,
        "verdict": verdict.value,
        "reason": reason,
        "findings": [finding.to_json()],
        "observation": {},
        "seconds": 0.0,
    }
    return line | ({"url": entry.url} if entry is not None else {})


def _findings(mine: dict[Key, Judged]) -> Iterator[Finding]:
    """One finding for each form and kind, with an example."""
    classes: dict[tuple[str, str], list[tuple[Judged, str]]] = {}
    for key, one in sorted(mine.items()):
        for kind, detail in one.findings[:1]:
            classes.setdefault((key.form, kind), []).append((one, detail))
    for (form, kind), members in classes.items():
        one, detail = members[0]
        total = sum(key.form == form for key in mine)
        at = f"; at fault: {one.stage}" if one.stage else ""
        text = f"{form}, {len(members)} of {total} calls: {one.sentence or one.key}: {detail}{at}"
        yield Finding(Kind(kind), _check(one, kind), text[:900])


def _check(one: Judged, kind: str) -> str:
    if kind == Kind.LOST_VALIDATION.value:
        return OP_ACCEPTED
    if kind in (Kind.CRASH.value, Kind.TIMEOUT.value):
        return OP_ENDED if one.how == "crash" else OP_REFUSED
    return OP_DIFFERS


def _verdict(mine: dict[Key, Judged], findings: list[Finding], before: set[Key], nothing: str) -> tuple[Verdict, str]:
    if findings:
        kinds = {finding.kind for finding in findings}
        word = Verdict.ERROR if kinds == {Kind.CRASH} else Verdict.TIMEOUT if kinds == {Kind.TIMEOUT} else Verdict.FAIL
        return word, findings[0].detail[:300]
    if not mine:
        return (
            (Verdict.BLOCKED, "every call is wrong at an earlier stage") if before else (Verdict.UNAVAILABLE, nothing)
        )
    if all(one.how == REFUSES for one in mine.values()):
        return Verdict.UNSUPPORTED, next(iter(mine.values())).note
    broken = [
        one
        for one in mine.values()
        if one.how == FALLBACK and one.note.startswith(("graph break", "raises with fullgraph"))
    ]
    if len(broken) == len(mine):
        return Verdict.FALLBACK, broken[0].note
    return Verdict.PASS, ""
