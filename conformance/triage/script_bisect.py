"""Which release broke a script? The script runs, as it is, in environments of several versions; its exit code decides.

Nothing of this project is imported there, so that releases are searched which the suite itself does not support.
Answers are kept by the text of the script and the version, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from conformance import paths
from conformance.errors import UsageError
from conformance.line_store import LineStore
from conformance.triage.bisect import between, in_folder, released
from conformance.triage.runs import plain_ending
from conformance.virtualenvs import Environments

RUN_LIMIT = 300.0  # seconds of processor time that one run of a script may take
BESIDE = ("numpy",)  # what scripts may expect beside torch


@dataclass(frozen=True)
class Seen:
    """How a script ended with one version: `code` as the shell sees it, None where it did not end. `skipped` says why
    the version could not be asked."""

    version: str
    code: int | None = 0
    text: str = ""
    seconds: float = 0.0
    skipped: str = ""

    @property
    def right(self) -> bool:
        return not self.skipped and self.code == 0

    @property
    def sign(self) -> str:
        """In a table."""
        if self.skipped:
            return "-"
        return "hang" if self.code is None else str(self.code)


@dataclass
class Verdict:
    """`first_bad` and `last_good` where the script was right in older versions and fails in newer ones; else `said`
    says what was found instead."""

    first_bad: str = ""
    last_good: str = ""
    said: str = ""


class ScriptBisect:
    """Asks versions of a script, several at a time."""

    def __init__(
        self, script: Path, environments: Environments, workers: int = 2, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.script, self.environments, self.workers, self.say = script, environments, workers, say
        self.memory = memory(script, (*environments.beside, *environments.options))

    def ask(self, versions: Sequence[str]) -> dict[str, Seen]:
        with ThreadPoolExecutor(self.workers) as threads:
            return dict(zip(versions, threads.map(self._ask, versions), strict=True))

    def _ask(self, version: str) -> Seen:
        known = self.memory.known.get(version)
        if known is None:
            known = self._run(version)
            if not known.skipped:
                self.memory.keep(known)
        self.say(f"{self.script.stem}, {version}: {known.skipped or known.sign}")
        return known

    def _run(self, version: str) -> Seen:
        try:
            python = self.environments.python(version)
        except LookupError as error:
            return Seen(version, skipped=f"does not install: {error}")
        with tempfile.TemporaryDirectory(prefix="conformance-bisect-") as folder:
            ending = plain_ending(self.script, (), {"TMPDIR": folder}, Path(folder), RUN_LIMIT, python)
        return Seen(version, ending.code, ending.told(), round(ending.seconds, 1))

    def search(self, versions: Sequence[str]) -> tuple[dict[str, Seen], Verdict]:
        """Binary search between the first version, which is taken to be good, and the last."""
        seen = self.ask([versions[0], versions[-1]])
        if said := _ends(seen[versions[0]], seen[versions[-1]]):
            return seen, Verdict(said=said)
        low, high = 0, len(versions) - 1
        while middles := [n for n in range(low + 1, high) if not _skipped(seen, versions[n])]:
            middle = middles[len(middles) // 2]
            seen |= self.ask([versions[middle]])
            if seen[versions[middle]].skipped:
                continue
            low, high = (middle, high) if seen[versions[middle]].right else (low, middle)
        return seen, Verdict(versions[high], versions[low])

    def table(self, versions: Sequence[str]) -> tuple[dict[str, Seen], Verdict]:
        """Every version."""
        seen = self.ask(versions)
        return seen, verdict([seen[version] for version in versions])


def verdict(seen: Sequence[Seen]) -> Verdict:
    """What a whole row of versions, oldest first, says."""
    asked = [one for one in seen if not one.skipped]
    if not asked:
        return Verdict(said="no version could be asked")
    changes = [n for n in range(1, len(asked)) if asked[n].right != asked[n - 1].right]
    if not changes:
        return Verdict(said="it never fails" if asked[0].right else "it fails in every version")
    last = next((n for n in reversed(changes) if not asked[n].right), None)
    if last is None:
        return Verdict(said=f"mended: right since {asked[changes[-1]].version}")
    later = f"; right again since {asked[changes[-1]].version}" if changes[-1] > last else ""
    return Verdict(asked[last].version, asked[last - 1].version, later.removeprefix("; "))


def _ends(good: Seen, bad: Seen) -> str:
    """Why there is nothing to search between these two."""
    for one in (good, bad):
        if one.skipped:
            raise UsageError(f"version {one.version} cannot be asked: {one.skipped}")
    if good.right and bad.right:
        return f"it never fails: right in {good.version} and in {bad.version}"
    if not good.right and not bad.right:
        return f"it fails in {good.version}, too: choose an older --good"
    return "" if good.right else f"it fails in {good.version} and is right in {bad.version}: it was mended in between"


def _skipped(seen: Mapping[str, Seen], version: str) -> bool:
    return version in seen and bool(seen[version].skipped)


def memory(script: Path, beside: Sequence[str]) -> LineStore[Seen]:
    """Answers that were had before, for the same text of the script and the same companions."""
    text = json.dumps([script.read_text(encoding="utf-8"), *beside, sys.version_info[:2]])
    path = paths.cache_folder("bisect") / f"script-{hashlib.sha256(text.encode()).hexdigest()[:24]}.jsonl"
    return LineStore(path, Seen, lambda seen: seen.version)


# ----------------------------------------------------------------------------------------------- versions


def listed(package: str, versions: str | None, wheels: Path | None, index: str | None, pre: bool) -> list[str]:
    """The versions that can be asked, oldest first: those that were named, or of a folder of wheels, an index, PyPI."""
    if versions:
        return [version.strip() for version in versions.split(",") if version.strip()]
    if wheels:
        return in_folder(package, wheels)
    return in_index(package, index, pre) if index else released(package)


def in_index(package: str, index: str, pre: bool) -> list[str]:
    """The versions of a package index (the simple API) that have a wheel for this machine and this Python."""
    address = f"{index.rstrip('/')}/{package}/"
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            text = answer.read().decode("utf-8", "replace")
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise UsageError(f"no list of {package} at {address}: {error}; name versions with --versions") from None
    here = set(sys_tags())
    found = set()
    for name in {urllib.parse.unquote(name) for name in re.findall(r"[\w.+%-]+\.whl", text)}:
        try:
            project, version, _, tags = parse_wheel_filename(name)
        except InvalidWheelFilename:
            continue
        if project == package and tags & here and (pre or not version.is_prerelease):
            found.add(version)
    if not found:
        hint = "" if pre else " (nightlies are pre-releases: add --pre)"
        raise UsageError(f"{address} has no wheel of {package} for this machine{hint}")
    return [str(version) for version in sorted(found)]


def chosen(versions: Sequence[str], good: str | None, bad: str | None) -> list[str]:
    """Those from the good version to the bad one; all, where none is named."""
    if good and bad:
        return between(versions, good, bad)
    if good or bad:
        raise UsageError("name both --good and --bad, or neither with --table")
    return list(versions)


def scripts_of(subject: str) -> list[Path]:
    """The script, or those of a folder."""
    path = Path(subject)
    if path.is_dir():
        found = sorted(path.glob("*.py"))
        if not found:
            raise UsageError(f"no script in {path}")
        return found
    if not path.is_file():
        raise UsageError(f"no file {path}")
    return [path]
