"""Between which two versions did a cell move? Binary search over released wheels, each in an environment of its own.

A cell moves when its verdict does, or a fact of its observation (kernels, matches, graphs …): one kernel becoming two with
the same answer is a movement too. Environments and answers are kept under CONFORMANCE_HOME, so that a search that was
stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from conformance import environment, paths, record
from conformance.cell import Cell
from conformance.errors import UsageError
from conformance.line_store import LineStore
from conformance.stage import STAGES

UNTOLD = {"digest"}  # differs with every letter of the generated source


@dataclass
class Answer:
    """What one version says of the cell. `skipped` says why it could not be asked."""

    version: str
    verdict: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)  # verdicts of the same micrograph, by stage
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # and its facts, by stage
    skipped: str = ""

    def value(self, fact: str | None) -> str:
        return self.verdict if fact is None else json.dumps(self.facts.get(fact), sort_keys=True)


# ------------------------------------------------------------------------------------------- versions


def released(package: str, index: str = "https://pypi.org/pypi") -> list[str]:
    """All final releases, oldest first."""
    try:
        with urllib.request.urlopen(f"{index}/{package}/json", timeout=30) as answer:
            data = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise UsageError(
            f"no list of releases of {package} (no network? {error}); name them with --versions 2.11.0,2.12.0,…"
        ) from None
    return _sorted(version for version, files in data["releases"].items() if files)


def in_folder(package: str, folder: Path) -> list[str]:
    """The versions of the wheels in a folder."""
    name = package.replace("-", "_")
    found = {m.group(1) for f in folder.glob(f"{name}-*.whl") if (m := re.match(rf"{name}-([^-]+)-", f.name))}
    if not found:
        raise UsageError(f"no wheel of {package} in {folder}")
    return _sorted(found)


def _sorted(versions: Any) -> list[str]:
    parsed = []
    for text in versions:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if not version.is_prerelease or version.is_devrelease:
            parsed.append((version, text))
    return [text for _, text in sorted(parsed)]


def between(versions: Sequence[str], good: str, bad: str) -> list[str]:
    if Version(good) > Version(bad):
        low, high = bad, good
    else:
        low, high = good, bad
    chosen = [v for v in versions if Version(low) <= Version(v) <= Version(high)]
    for asked in (good, bad):
        if asked not in chosen:
            chosen = _sorted([*chosen, asked])
    return chosen if Version(good) <= Version(bad) else chosen[::-1]


# --------------------------------------------------------------------------------------------- asking


def ask(python: str, version: str, cell: Cell, extra_env: Mapping[str, str], micrographs: str | None = None) -> Answer:
    """Run the cell's micrograph with another Python, by this very suite."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="conformance-bisect-") as folder:
        path = Path(folder) / "run.jsonl"
        command = [python, "-m", "conformance.cli", "run", "-b", cell.backend, "-t", cell.target, "-m", cell.micrograph]
        command += ["--record", str(path), "--fresh", "--no-baseline", "-n", "1", "--expectations", folder]
        command += ["--micrographs", micrographs] if micrographs else []
        env = {**os.environ, "PYTHONPATH": paths.import_path(), **extra_env}
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=paths.data())
        if done.returncode not in (0, 1) or not path.exists():
            said = (done.stderr or done.stdout).strip().splitlines()
            return Answer(version, skipped=said[-1][:200] if said else f"ended with code {done.returncode}")
        lines = record.read(path).cells
    mine = lines.get(str(cell))
    if mine is None:
        return Answer(version, skipped="the run says nothing of this cell")
    if mine["verdict"] == "unavailable":
        return Answer(version, skipped=mine["reason"][:200])
    stages = {name.split("/")[0]: line["verdict"] for name, line in lines.items()}
    others = {name.split("/")[0]: line["observation"] for name, line in lines.items()}
    return Answer(version, mine["verdict"], mine["observation"], stages, others)


# --------------------------------------------------------------------------------------------- search


def memory(cell: Cell) -> LineStore[Answer]:
    """Answers that were had before, for the same cell, suite and way of asking."""
    path = paths.cache_folder("bisect") / f"{str(cell).replace('/', '-')}-{environment.revision()}.jsonl"
    return LineStore(path, Answer, lambda answer: answer.version)


@dataclass
class Found:
    good: Answer
    bad: Answer
    asked: list[Answer]
    fact: str | None

    def moved(self) -> Iterator[str]:
        """The stage diff between the two: verdicts, then facts, of every stage of the same micrograph."""
        for stage in STAGES:
            old, new = self.good.stages.get(stage.value, "-"), self.bad.stages.get(stage.value, "-")
            if old != new:
                yield f"{stage}: {old} → {new}"
            yield from (
                f"{stage}: {line}"
                for line in _facts(self.good.others.get(stage.value, {}), self.bad.others.get(stage.value, {}))
            )


def _facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for fact in sorted({*old, *new} - UNTOLD):
        if old.get(fact) != new.get(fact):
            yield f"{fact}: {_change(old.get(fact), new.get(fact))}"


def _change(old: Any, new: Any) -> str:
    """Of a table only the entries that moved."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        return ", ".join(f"{key} {_short(old.get(key, 0))} → {_short(new.get(key, 0))}" for key in keys)
    return f"{_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 100 else text[:99] + "…"


def search(
    versions: Sequence[str], answer: Callable[[str], Answer], fact: str | None, say: Callable[[str], None]
) -> Found:
    """The last version that answers as the first does, and the first that does not."""
    asked: list[Answer] = []

    def get(version: str) -> Answer:
        found = answer(version)
        asked.append(found)
        say(f"{version}: {(found.skipped and 'skipped: ' + found.skipped) or found.value(fact)}")
        return found

    def end(name: str, version: str) -> Answer:
        found = get(version)
        if found.skipped:
            raise UsageError(f"the {name} version {version} cannot be asked: {found.skipped}")
        return found

    good = end("good", versions[0])
    if fact is None and good.verdict != "pass":
        raise UsageError(
            f"the good version {good.version} is not good: {good.verdict}; choose another, or bisect a fact with --fact"
        )
    bad = end("bad", versions[-1])
    if fact is not None and fact not in good.facts:
        known = ", ".join(sorted(good.facts))
        raise UsageError(f"the cell has no fact {fact!r}; it has {known}")
    if good.value(fact) == bad.value(fact):
        what = f"{fact} is" if fact else "the verdict is"
        mend = "" if fact else "; name a fact that moved with --fact (`conformance diff` shows them)"
        raise UsageError(f"{good.version} and {bad.version} say the same: {what} {good.value(fact)} in both{mend}")
    candidates = list(versions[1:-1])
    while candidates:
        middle = candidates[len(candidates) // 2]
        seen = get(middle)
        if seen.skipped:
            candidates.remove(middle)
        elif seen.value(fact) == good.value(fact):
            good, candidates = seen, candidates[candidates.index(middle) + 1 :]
        else:
            bad, candidates = seen, candidates[: candidates.index(middle)]
    return Found(good, bad, asked, fact)


# ------------------------------------------------------------------------------- commits of a checkout


def commits(source: Path, good: str, bad: str) -> list[str]:
    done = subprocess.run(
        ["git", "-C", str(source), "rev-list", "--reverse", "--ancestry-path", f"{good}..{bad}"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UsageError(
            f"{source} does not have the commits {good} and {bad}: {done.stderr.strip().splitlines()[-1][:160]}"
        )
    listed = done.stdout.split()
    if not listed:
        raise UsageError(
            f"there is no commit between {good} and {bad} in {source}; is the good one an ancestor of the bad one?"
        )
    return [full_commit(source, good), *listed]


def full_commit(source: Path, name: str) -> str:
    """The whole hash of a commit, a branch or a tag."""
    done = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UsageError(f"{source} is no git checkout that has the commit {name}")
    return done.stdout.strip()


def worktree(source: Path, commit: str) -> Path:
    """The tree of a commit, beside the checkout: the user's own files are not touched."""
    folder = paths.cache_folder() / "worktrees" / commit[:16]
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.Popen(
            ["git", "-C", str(source), "archive", commit], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        done = subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, capture_output=True)
        if archive.wait() or done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise LookupError(f"git archive {commit[:12]} failed")
        (folder / "ready").touch()
    return folder
