"""Outcomes as lines of a record: the cell, the verdict, what is expected."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from conformance.cell import Cell
from conformance.expectations import Expectation, Expectations, load
from conformance.record import SCHEMA
from conformance.revision import commit
from conformance.stage import Stage
from conformance.upstream import stage_map
from conformance.upstream.checkout import Checkout
from conformance.upstream.interpreter import Interpreter
from conformance.upstream.outcome import COLLECTION, Outcome
from conformance.upstream.stage_map import StageMap
from conformance.verdict import Finding, Verdict

PREFIX = "upstream:"
CHECK = "UPSTREAM"
VERDICTS = {
    "passed": Verdict.PASS,
    "skipped": Verdict.UNAVAILABLE,
    "unavailable": Verdict.UNAVAILABLE,
    "xfailed": Verdict.XFAIL,
    "xpassed": Verdict.XPASS,
    "failed": Verdict.FAIL,
    "crashed": Verdict.ERROR,
    "hung": Verdict.TIMEOUT,
}
REASONS = {
    "skipped": "skipped by upstream: ",
    "xfailed": "upstream expects it to fail: ",
    "xpassed": "upstream expects it to fail, and it passes: ",
}


class Results:
    """Turns outcomes into record lines, with the map's stage and the expectations."""

    def __init__(
        self, mapped: StageMap, checkout: Checkout, python: Interpreter, folder: Path = stage_map.HOME
    ) -> None:
        self.map, self.checkout, self.python, self.folder = mapped, checkout, python, folder
        self.versions = {**python.packages, "checkout": checkout.release}
        if not mapped.suite.package:
            self.versions[mapped.suite.backend] = checkout.version
        versions = {**self.versions, "python": python.facts["python"], "machine": python.facts["machine"]}
        self.expectations: Expectations = load(folder / "expected", versions)

    def cell(self, test: str) -> str:
        entry = self.map.find_file(test.partition("::")[0]) if test.endswith(COLLECTION) else self.map.find(test)
        suite = self.map.suite
        return str(Cell(entry.stage if entry else Stage.CAPTURE, suite.backend, suite.target, PREFIX + test))

    def is_expected(self, outcome: Outcome) -> bool:
        return self._judged(outcome)[1] is not None

    def lines(self, outcome: Outcome) -> list[dict[str, Any]]:
        """The lines of the record: one, or two for a test that was stopped where a GPU must go on. If it had shown
        something of its own stage by then, that stage passes as far as it was seen, and its runtime is unavailable."""
        if outcome.outcome != "stopped":
            return [self._line(outcome)]
        stage = Cell.parse(self.cell(outcome.test)).stage
        line = outcome.line.removeprefix("Stopped: ")
        rest = replace(outcome, outcome="unavailable", line=f"{line}{_not_shown(stage, outcome)}", facts={})
        if not _shown(stage, outcome):
            return [self._line(rest)]
        seen = replace(outcome, outcome="passed", line=f"{_told(outcome)}; then {line}")
        after = self._line(replace(rest, line=line))
        later = str(Cell(Stage.RUNTIME, *str(after["cell"]).split("/", 3)[1:]))
        return [self._line(seen), after | {"cell": later, "observation": {"after": stage.value}, "seconds": 0.0}]

    def _line(self, outcome: Outcome) -> dict[str, Any]:
        verdict, entry = self._judged(outcome)
        line: dict[str, Any] = {
            "cell": self.cell(outcome.test),
            "verdict": verdict.value,
            "reason": entry.why if entry else self._reason(outcome),
            "findings": [finding.to_json() for finding in _findings(outcome)],
            "observation": _observation(outcome),
            "seconds": round(outcome.seconds, 2),
        }
        return line | ({"url": entry.url} if entry else {})

    def _judged(self, outcome: Outcome) -> tuple[Verdict, Expectation | None]:
        verdict = VERDICTS[outcome.outcome]
        if outcome.failure and outcome.failure.cause in ("missing", "private_name"):
            verdict = Verdict.UNAVAILABLE
        return self.expectations.judge(self.cell(outcome.test), verdict, _findings(outcome))

    def _reason(self, outcome: Outcome) -> str:
        failure = outcome.failure
        if failure is None:
            return (REASONS.get(outcome.outcome, "") + outcome.line).strip(": ")
        if failure.cause == "missing":
            return failure.what
        if failure.cause in ("private_name", "public_name"):
            package = self.map.suite.package
            return f"{package} {self.python.packages.get(package, '')} has no such {failure.what}: {failure.line}"
        if outcome.answer is None:
            return failure.line
        stage = self.cell(outcome.test).partition("/")[0]
        return f"belongs to {stage}; {outcome.answer.said}: {failure.line}"

    # ------------------------------------------------------------------------------------- expectations, both ways

    def idle(self, cells: Mapping[str, Any], files: Iterable[str]) -> list[Expectation]:
        """Entries that hold for these versions and name a file that was run whole, but match no cell of the record."""
        ran = set(files)
        mine = [
            entry
            for entry in self.expectations.entries
            if entry.holds(self.expectations.versions) and _file_of(entry.cell) in ran
        ]
        return [entry for entry in mine if not any(fnmatchcase(cell, entry.cell) for cell in cells)]

    # ------------------------------------------------------------------------------------- the header

    def header(self) -> dict[str, Any]:
        facts, suite = self.python.facts, self.map.suite
        first = suite.package or suite.backend  # what names the column of the matrix
        versions = {first: self.versions.get(first, ""), **self.versions}
        left_out = ("pytest", "checkout")
        return {
            "schema": SCHEMA,
            "suite": revision(self.folder / f"{suite.name}.toml"),
            "commit": commit(),
            "env": {
                **{key: facts.get(key) for key in ("torch", "python", "machine", "system", "cpu", "threads", "gpu")},
                "backends": {
                    suite.backend: {key: value for key, value in versions.items() if value and key not in left_out}
                },
                "checkout": {suite.name: self.checkout.version},
            },
            "expectations": self.expectations.digest,
            "argv": [Path(word).name if Path(word).is_absolute() else word for word in ["conformance", *sys.argv[1:]]],
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def _shown(stage: Stage, outcome: Outcome) -> bool:
    """Had a test shown something of its stage when it was stopped? A converter, if an engine was built; anything before
    it, if an assertion of the test had held."""
    if stage is Stage.CODEGEN:
        return bool(outcome.facts.get("engines"))
    return stage.order < Stage.CODEGEN.order and bool(outcome.facts.get("asserted"))


def _not_shown(stage: Stage, outcome: Outcome) -> str:
    """Why a stopped test says nothing of its stage, where it is one that does not need a GPU."""
    if stage.order >= Stage.CODEGEN.order or outcome.facts.get("asserted"):
        return ""
    return ", and the test asserts nothing before that"


def _told(outcome: Outcome) -> str:
    facts = outcome.facts
    built = (
        f"engines: {facts['engines']} built for real, {facts['engine_bytes']:,} bytes" if facts.get("engines") else ""
    )
    count = facts.get("asserted", 0)
    held = f"{count} assertion{'s' if count > 1 else ''} of the test held" if count else ""
    return "; ".join(part for part in (built, held) if part)


def _file_of(glob: str) -> str:
    return glob.split("/", 3)[3].removeprefix(PREFIX).partition("::")[0]


def _findings(outcome: Outcome) -> list[Finding]:
    failure = outcome.failure
    if failure is None or failure.cause in ("missing", "private_name"):
        return []
    return [Finding(failure.kind, CHECK, failure.line)]


def _observation(outcome: Outcome) -> dict[str, Any]:
    """What `diff` compares: nothing for a test that passed."""
    found = {key: value for key, value in outcome.facts.items() if key in ("tests", "engines")}
    if outcome.failure:
        found["cause"] = outcome.failure.cause
        found |= {"name": outcome.failure.what} if outcome.failure.what else {}
    if outcome.answer:
        found |= {
            "fails_from": outcome.answer.said if outcome.answer.direct else outcome.answer.stage or outcome.answer.said,
            "rung": outcome.answer.rung,
            "rungs": outcome.answer.tried,
        }
    if selection := outcome.facts.get("selection"):
        found["selection"] = selection
    return found


def revision(map_file: Path) -> str:
    """A digest of what decides an answer: the map, and the files that run inside the interpreter under test."""
    here = Path(__file__).parent
    hashed = hashlib.sha256()
    files = [
        map_file,
        *(
            here / name
            for name in ("child.py", "server.py", "rungs.py", "main_guard.py", "assertions.py", "bootstrap.py")
        ),
    ]
    for file in files:
        hashed.update(file.read_bytes() if file.is_file() else b"")
    return hashed.hexdigest()[:12]
