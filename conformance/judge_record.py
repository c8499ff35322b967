"""A record held against the expectations of today, without running anything: what was measured stays as it is.

Contracts and baselines were held against it when it was made. Only what follows from an expectation changes: `xfail` and
`xpass`, their reason and link, and what cells that they block say of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from conformance import expectations
from conformance.expectations import Expectations
from conformance.judge import verdict_of
from conformance.record import Run, Writer, is_unexpected, read
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

NOT_JUDGED = {Verdict.UNAVAILABLE, Verdict.UNSUPPORTED, Verdict.BLOCKED}


def judge_again(path: Path, folder: Path | None, commit: str) -> tuple[int, int, int]:
    """Write the record anew, as judged now. Returns how many cells changed, and how many were and are unexpected."""
    run = read(path)
    known = expectations.load(folder, versions(run.header))
    lines = {line["cell"]: line for line in judged(run, known)}
    changed = sum(lines[name]["verdict"] != old["verdict"] for name, old in run.cells.items())
    _replace(path, {**run.header, "expectations": known.digest, "judged": commit}, lines.values())
    return changed, sum(map(is_unexpected, run.cells.values())), sum(map(is_unexpected, lines.values()))


def versions(header: Mapping[str, Any]) -> dict[str, str]:
    """The versions of a record's header, flat, for the conditions of expectations."""
    env = header["env"]
    flat = {key: str(env.get(key)) for key in ("python", "machine", "gpu")}
    for found in env.get("backends", {}).values():
        flat |= found
    return flat | {"torch": str(env.get("torch", ""))}


def judged(run: Run, known: Expectations) -> Iterator[dict[str, Any]]:
    """The lines of the record, each in the light of these expectations."""
    seen: dict[str, dict[str, Any]] = {}
    for name, old in run.cells.items():
        line = dict(old)
        if line["verdict"] == Verdict.BLOCKED.value and (cause := seen.get(line.get("cause", ""))):
            stage = cause["cell"].partition("/")[0]
            line["reason"] = f"{stage} {cause['verdict']}: {cause['reason']}"
        elif Verdict(line["verdict"]) not in NOT_JUDGED:
            line |= _judged(line, known)
            if not line["url"]:
                del line["url"]
        seen[name] = line
        yield line


def _judged(line: Mapping[str, Any], known: Expectations) -> dict[str, Any]:
    findings = [Finding(Kind(one["kind"]), one["check"], one["detail"]) for one in line["findings"]]
    verdict, reason = _without_expectation(line, findings)
    verdict, entry = known.judge(line["cell"], verdict, findings)
    if entry is not None:
        reason = entry.why + (f" ({reason})" if reason else "")
    return {
        "verdict": verdict.value,
        "reason": reason,
        "url": entry.url if entry else "",
        "unexpected": verdict.unexpected,
    }


def _without_expectation(line: Mapping[str, Any], findings: list[Finding]) -> tuple[Verdict, str]:
    """What the verdict was before anybody expected it."""
    verdict = Verdict(line["verdict"])
    if verdict not in (Verdict.XFAIL, Verdict.XPASS):
        return verdict, line["reason"]
    return verdict_of(Observation(line["observation"]), findings)


def _replace(path: Path, header: Mapping[str, Any], lines: Any) -> None:
    """All of the new record or, where that cannot be written, the old one. The texts beside it stay."""
    unfinished = Path(tempfile.mkdtemp(prefix=".judging-", dir=path.parent)) / path.name
    try:
        writer = Writer(unfinished, header)
        try:
            for line in lines:
                writer.add(line)
        finally:
            writer.close()
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
        with suppress(OSError):
            unfinished.parent.rmdir()
