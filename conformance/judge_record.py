"""A record judged by the checks, contracts and expectations of now, without running anything: what was measured stays as it is.

What a check found is found anew from the recorded facts, where the micrograph is the one that was recorded. What was found while
measuring (a difference from eager, a race, a baseline that moved) is taken as it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from conformance import checks, environment, expectations, paths
from conformance.cell import Cell
from conformance.checks.registry import REGISTRY
from conformance.expectations import Expectations
from conformance.judge import blocked_by, expected, verdict_of
from conformance.micrograph import Micrograph
from conformance.ops.words import PREFIX
from conformance.record import VERDICTS, Run, is_unexpected, read
from conformance.record_writer import Writer
from conformance.trace import Observation
from conformance.verdict import Finding, Verdict

NOT_JUDGED = {Verdict.UNAVAILABLE, Verdict.UNSUPPORTED, Verdict.BLOCKED}
Library = Mapping[str, type[Micrograph]]


def judge_again(path: Path, library: Library, folder: Path | None, commit: str) -> tuple[int, int, int]:
    """Write the record anew, as judged now. Returns how many cells changed, and how many were and are unexpected."""
    run = read(path)
    if folder is None and _of_operators(run):
        folder = paths.expectations() / "ops"
    known = expectations.load(folder, environment.versions(run.header["env"]))
    lines = {line["cell"]: line for line in judged(run, library, known)}
    changed = sum(lines[name] != old for name, old in run.cells.items())
    _replace(path, {**run.header, "expectations": known.digest, "judged": commit}, lines.values())
    return changed, sum(map(is_unexpected, run.cells.values())), sum(map(is_unexpected, lines.values()))


def judged(run: Run, library: Library, known: Expectations) -> Iterator[dict[str, Any]]:
    """The lines of the record, each in the light of the checks and expectations."""
    seen: dict[str, dict[str, Any]] = {}
    for name, old in run.cells.items():
        line = dict(old)
        if line["verdict"] == Verdict.BLOCKED.value and (cause := seen.get(line.get("cause", ""))):
            line["reason"] = blocked_by(cause["cell"].partition("/")[0], cause["verdict"], cause["reason"])
        elif Verdict(line["verdict"]) not in NOT_JUDGED:
            line |= _judged(run, line, library, known)
            if not line["url"]:
                del line["url"]
            if "unexpected" not in old and line["unexpected"] == is_unexpected({"verdict": line["verdict"]}):
                del line["unexpected"]
        seen[name] = line
        yield line


def _judged(run: Run, line: Mapping[str, Any], library: Library, known: Expectations) -> dict[str, Any]:
    before = [Finding.from_json(one) for one in line["findings"]]
    findings = _found(run, line, before, library)
    verdict, reason = Verdict(line["verdict"]), line["reason"]
    if verdict in (Verdict.XFAIL, Verdict.XPASS) or findings != before:
        verdict, reason = verdict_of(_seen(line, known), findings)
    seen = verdict, reason
    verdict, reason, url = expected(known, line["cell"], verdict, reason, findings)
    if verdict is Verdict.XPASS and _of_operators(run) and not _whole(run):
        (verdict, reason), url = seen, ""  # the form that fails was perhaps not asked for
    # Of an operator, a fallback is how torch.compile handles what it does not capture: the engine said then that this is no failure.
    as_before = verdict.value == line["verdict"]
    return {
        "verdict": verdict.value,
        "reason": reason,
        "findings": [finding.to_json() for finding in findings],
        "url": url,
        "unexpected": is_unexpected(line) if as_before else verdict.unexpected,
    }


def _of_operators(run: Run) -> bool:
    """Was this a sweep of operators, which has expectations of its own?"""
    return all(name.split("/")[-1].startswith(PREFIX) for name in run.cells)


def _whole(run: Run) -> bool:
    """Did the sweep ask for all forms and samples that a plain `conformance ops` asks for?"""
    return not {"--form", "--samples"} & set(run.header.get("argv", ()))


def _seen(line: Mapping[str, Any], known: Expectations) -> Observation:
    """What was observed, with the backend's own word. A line from before that was recorded: what was expected although nothing was found is
    `fallback`, the only word that an expectation takes."""
    said = line.get("said", {})
    if said.get("verdict") in VERDICTS:
        return Observation(line["observation"], verdict=Verdict(said["verdict"]), reason=said.get("reason", ""))
    if line["verdict"] != Verdict.XFAIL.value or line["findings"]:
        return Observation(line["observation"])
    _, entry = known.judge(line["cell"], Verdict.FALLBACK, [])
    reason = line["reason"]
    if entry and reason.startswith(f"{entry.why} ("):
        reason = reason[len(entry.why) + 2 : -1]
    return Observation(line["observation"], verdict=Verdict.FALLBACK, reason=reason)


def _found(run: Run, line: Mapping[str, Any], before: list[Finding], library: Library) -> list[Finding]:
    """What was found while measuring, and what the checks find in the facts now."""
    cell = Cell.parse(line["cell"])
    micrograph = library.get(cell.micrograph)
    said = "said" in line or (
        not before and line["verdict"] not in (Verdict.PASS.value, Verdict.XPASS.value)
    )  # the backend's own word
    if said or micrograph is None or micrograph.digest() != line.get("micrograph"):
        return before
    texts = {name: run.text(key) or "" for name, key in line["texts"].items()} if _reads_texts(micrograph) else {}
    measured = [one for one in before if one.check not in REGISTRY or REGISTRY[one.check].judge is None]
    seen = checks.Seen(Observation(line["observation"], texts), micrograph, cell.backend, cell.target)
    return [*measured, *checks.findings(cell.stage, seen)]


def _reads_texts(micrograph: type[Micrograph]) -> bool:
    return bool(micrograph.contract.codegen.avoids)


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
