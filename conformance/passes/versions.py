"""A pass by several versions of torch: one process a version, in an environment of its own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.errors import UsageError
from conformance.passes.compare import Change, change
from conformance.passes.environments import python_for
from conformance.passes.examination import Examination

LIMIT = 1800.0  # seconds for one version


@dataclass
class History:
    """The examinations of one pass, by version and micrograph. `failed`: version → why there is nothing."""

    name: str
    versions: list[str]
    examined: dict[str, dict[str, Examination]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def micrographs(self) -> list[str]:
        return list(dict.fromkeys(name for found in self.examined.values() for name in found))

    def patterns(self, micrograph: str) -> list[str]:
        found = (self.examined[v][micrograph] for v in self.versions if micrograph in self.examined.get(v, {}))
        return list(dict.fromkeys(name for each in found for name in each.matches))

    def count(self, version: str, micrograph: str, pattern: str = "") -> str:
        """Matches of one pattern or of all, and the kinds of what is wrong; `?` where nothing was said, `·` where it was not examined."""
        found = self.examined.get(version, {}).get(micrograph)
        if found is None or found.skipped:
            return "?" if found is None else "·"
        count = found.matches.get(pattern, 0) if pattern else found.total
        return ", ".join([str(count), *dict.fromkeys(finding.kind for finding in found.serious())])

    def changes(self) -> list[Change]:
        """Between each version and the one before it that has an answer."""
        found: list[Change] = []
        for micrograph in self.micrographs():
            known = [self.examined[v][micrograph] for v in self.versions if micrograph in self.examined.get(v, {})]
            for old, new in itertools.pairwise(known):
                if (made := change(old, new)) is not None:
                    found.append(made)
        return found


def histories(
    addresses: Sequence[str],
    versions: Sequence[str],
    known: dict[str, str],
    arguments: Sequence[str],
    say: Callable[[str], None] = lambda _: None,
) -> list[History]:
    """One history for every pass. `arguments` are further ones of `conformance pass`."""
    made = {address: History(address.rpartition(":")[2], list(versions)) for address in addresses}
    for version in versions:
        python = python_for(version, known, say)
        say(f"torch {version}: {python}")
        answer = ask(python, addresses, arguments)
        for address, history in made.items():
            if isinstance(answer, str):
                history.failed[version] = answer
            else:
                found = [Examination.from_json(each) for each in answer.get(address, [])]
                history.examined[version] = {each.micrograph: each for each in found}
    return list(made.values())


def ask(python: str, addresses: Sequence[str], arguments: Sequence[str]) -> dict[str, Any] | str:
    """What `conformance pass` says in another interpreter: examinations by address; a line where it says nothing."""
    command = [python, "-m", "conformance.cli", "pass", *addresses, "--json", "--quick", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths.import_path()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment)
    except subprocess.TimeoutExpired:
        return f"it took longer than {LIMIT:g} s"
    if done.returncode not in (0, 1):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else f"it exited with {done.returncode}"
    try:
        return dict(json.loads(done.stdout)["passes"])
    except (ValueError, KeyError):
        return f"its answer cannot be read: {done.stdout[:80]!r}"


def read(file: Path) -> dict[str, list[Examination]]:
    """What `conformance pass … --json > FILE` wrote."""
    if not file.is_file():
        raise UsageError(f"no file {file}: write it with `conformance pass … --json > {file}`")
    try:
        data = json.loads(file.read_text("utf-8"))
        return {address: [Examination.from_json(each) for each in found] for address, found in data["passes"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is not what `conformance pass … --json` writes: {error}") from None
