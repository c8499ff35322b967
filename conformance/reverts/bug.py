"""One fix of the history, and what was found out about it: a line of the record."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.line_store import LineStore

SCHEMA = "conformance-reverts/1"

LEFT_OUT = "left out"  # by a rule of history.py
NAMED = "named"  # a micrograph or the findings name its commit, its pull request or the issue that it fixes
CANDIDATE = "candidate"
NOT_APPLIED = "does not apply"
NOT_PROVEN = "not proven"
PROVEN = "proven"


@dataclass
class Bug:
    commit: str
    title: str
    date: str
    pull: int = 0
    issues: list[int] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # of the package, as in the history
    tests: list[str] = field(default_factory=list)  # test files
    outcome: str = CANDIDATE
    reason: str = ""
    changed: dict[str, list[list[int]]] = field(default_factory=dict)  # file: [first, last] lines of the installed one
    proof: list[str] = field(default_factory=list)  # tests that pass without the overlay and fail with it
    scored: bool = False
    ran: int = 0  # micrographs that were run
    shown: bool = False
    stage: str = ""  # of the first cell that differs
    kind: str = ""
    micrograph: str = ""
    detail: str = ""  # why nothing was run
    right: str = ""  # right, near, other
    showing: list[str] = field(default_factory=list)  # cells that differ, and how
    moved: list[str] = field(default_factory=list)  # cells whose facts alone differ
    seconds: float = 0.0

    @property
    def half(self) -> str:
        """The half whose bugs may be read (even), or the one that is kept apart (odd)."""
        return "odd" if int(self.commit[0], 16) % 2 else "even"


class Bugs:
    """The record: a header, then a line for every answer; the last line of a commit counts."""

    def __init__(self, path: Path, header: dict[str, Any] | None = None) -> None:
        if header is not None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"schema": SCHEMA, **header}) + "\n", encoding="utf-8")
        self.store = LineStore(path, Bug, lambda bug: bug.commit)

    def __iter__(self) -> Iterator[Bug]:
        return iter(list(self.store.known.values()))

    def keep(self, bug: Bug, **said: Any) -> Bug:
        bug = replace(bug, **said)
        self.store.keep(bug)
        return bug


def publish(record: Path, to: Path) -> None:
    """The last line of each commit, and of those that were left out by a rule only how many, by reason."""
    first, *_ = record.read_text(encoding="utf-8").split("\n", 1)
    bugs = list(Bugs(record))
    left_out = Counter(bug.reason for bug in bugs if bug.outcome == LEFT_OUT)
    told = [json.dumps(json.loads(first) | {"left_out": dict(left_out.most_common())})]
    told += [json.dumps(asdict(bug)) for bug in bugs if bug.outcome != LEFT_OUT]
    to.write_text("".join(f"{line}\n" for line in told), encoding="utf-8")


def header(argv: list[str], **more: Any) -> dict[str, Any]:
    from conformance import environment

    versions = environment.environment()
    return {"env": versions, "argv": argv, "started": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), **more}
