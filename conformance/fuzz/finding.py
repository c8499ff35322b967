"""A finding: a case that is wrong in a fresh process too, with the stage at fault. Equal ones are one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from conformance import environment, paths
from conformance.errors import UsageError, unknown
from conformance.files import mismatch, parse_json, read_regular
from conformance.fuzz.example import Example
from conformance.fuzz.home import home
from conformance.oracle import Difference


def normalized(text: str) -> str:
    """Without what differs between two occurrences of the same thing: numbers, names of values, paths, addresses."""
    text = re.sub(r"0x[0-9a-f]+", "#", text)
    text = re.sub(r"(/[\w.\-+]+)+", "PATH", text)
    text = re.sub(r"\b([a-z]+)_?\d+\b", r"\1#", text)
    text = re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?|\binf\b|\bnan\b", "#", text)
    return re.sub(r"\s+", " ", text)[:200]


def key_of(micrograph: str, stage: str | None, difference: Difference) -> str:
    """Crashes with the same words are one, whatever ran into them; wrong answers are told apart by the micrograph."""
    if difference.kind.value == "crash":
        return "|".join(("crash", normalized(difference.detail)))
    return "|".join((difference.kind.value, micrograph, normalized(difference.where)))


MAX_FILE = 256 << 20


class FindingLine(TypedDict):
    """A finding as it is written. Its id and its micrograph's name become names of files."""

    id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8}\Z")]
    key: str
    backend: Annotated[str, msgspec.Meta(pattern=r"\A\w{1,80}\Z")]
    target: Annotated[str, msgspec.Meta(pattern=r"\A\w{1,80}\Z")]
    stage: str
    kind: str
    detail: str
    example: dict[str, Any]
    versions: dict[str, str]
    found: str
    confirmed: bool


@dataclass(frozen=True)
class Finding:
    id: str
    key: str
    backend: str
    target: str
    stage: str
    kind: str
    detail: str
    example: Example
    versions: dict[str, str] = field(default_factory=dict)
    found: str = ""
    confirmed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**{k: v for k, v in vars(self).items() if k != "example"}, "example": self.example.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Finding:
        if problem := mismatch(data, FindingLine):
            raise UsageError(f"not a finding: {problem}")
        return cls(**{**data, "example": Example.from_json(data["example"], f"finding {data['id']}")})

    def __str__(self) -> str:
        return f"{self.stage}/{self.backend}/{self.target}/{self.example.micrograph}: {self.kind}: {self.detail}"


def finding_of(example: Example, difference: Difference, backend: str, target: str, **more: Any) -> Finding:
    return Finding(
        id=example.id,
        key=key_of(example.micrograph, None, difference),
        backend=backend,
        target=target,
        stage="runtime",
        kind=difference.kind.value,
        detail=str(difference),
        example=example,
        versions=environment.versions(),
        found=datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    )


# ----------------------------------------------------------------------------------------- confirming


def confirm(finding: Finding, python: str = sys.executable, timeout: float = 600.0) -> Finding:
    """The same case in a process that has done nothing else, through the watched compile: it names the stage."""
    with tempfile.TemporaryDirectory(prefix="conformance-confirm-") as folder:
        file, answer = Path(folder) / "example.json", Path(folder) / "answer.json"
        file.write_text(json.dumps(finding.example.to_json()))
        command = [python, "-m", "conformance.fuzz.confirm", str(file), finding.backend, finding.target, str(answer)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([paths.import_path(), os.getcwd()])}
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
        except subprocess.TimeoutExpired:
            return replace(
                finding, kind="timeout", detail=f"no end after {timeout:.0f} s in a fresh process", confirmed=True
            )
        if not answer.exists():
            if ended.returncode < 0:
                return replace(
                    finding, kind="crash", detail=f"the process died with signal {-ended.returncode}", confirmed=True
                )
            said = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
            return replace(
                finding, detail=f"{finding.detail} (a fresh process ended with code {ended.returncode}: {said[:200]})"
            )
        said = json.loads(answer.read_text())
    if not said["findings"]:
        return finding
    first = said["findings"][0]
    return replace(finding, stage=first["stage"], kind=first["kind"], detail=first["detail"], confirmed=True)


# -------------------------------------------------------------------------------------------- keeping


class Findings:
    """All findings of one backend and target on this machine, one a line, appended as they come."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home() / "findings.jsonl"
        self.problems: list[str] = []
        self.known: dict[str, Finding] = {finding.id: finding for finding in self._read()}

    def _read(self) -> Iterator[Finding]:
        if not os.path.lexists(self.path):
            return
        try:
            lines = read_regular(self.path, "the findings", MAX_FILE).splitlines()
        except UsageError as error:
            self.problems.append(str(error))
            return
        for number, line in enumerate(lines, 1):
            try:
                yield Finding.from_json(parse_json(line, "the line"))
            except (TypeError, UsageError) as error:
                self.problems.append(f"{self.path}:{number} is left out: {error}")

    def add(self, finding: Finding) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(finding.to_json()) + "\n")
        self.known[finding.id] = finding

    def keys(self) -> set[str]:
        return {finding.key for finding in self.known.values()}

    def __getitem__(self, id: str) -> Finding:
        found = [finding for key, finding in self.known.items() if key.startswith(id)]
        if len(found) != 1:
            raise unknown("finding", id, self.known)
        return found[0]
