"""The map of a project's test files to stages: `fixtures/upstream_tests/<suite>.toml`.

    [[map]]
    tests = "test/inductor/test_perf.py::FusionTests"     # file[::class[::test]], globs in each part; or a list of such
    stage = "fusion"
    checks = "bytes read and written after fusion"
    needs = "gpu"                                         # cpu (the default), gpu, multi-gpu, slow; several: "gpu slow"
    when = ">=2.7"                                        # versions of the checkout that have the file; absent: all
    why = "how the stage was decided, where it is not obvious"

The most specific entry wins: one with a test part before one with a class part before one with a file part; then the
one with more literal characters.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance import paths
from conformance.errors import UsageError, unknown
from conformance.stage import STAGES, Stage

HOME = paths.data() / "fixtures" / "upstream_tests"
NEEDS = ("cpu", "gpu", "multi-gpu", "slow")
ENTRY_KEYS = {"tests", "stage", "checks", "needs", "when", "why"}
MISSING_KEYS = {"pattern", "reason"}


@dataclass(frozen=True)
class Entry:
    """One glob of the map, with all that is known of the tests it selects."""

    tests: str
    stage: Stage
    checks: str
    needs: frozenset[str]
    when: str
    why: str
    source: str

    @property
    def parts(self) -> list[str]:
        return self.tests.split("::")

    @property
    def file(self) -> str:
        return self.parts[0]

    @property
    def specificity(self) -> tuple[int, int]:
        """How narrow the glob is: parts that say something, then literal characters."""
        telling = sum(part != "*" for part in self.parts)
        return telling, len(re.sub(r"\[[^]]*\]|[*?]", "", self.tests))

    def selects(self, test: str) -> bool:
        """Does the glob select this test (`file::class::test`) or, if it has a file part only, this file?"""
        file, *names = test.split("::")
        globs = self.parts
        if not fnmatchcase(file, globs[0]):
            return False
        if len(globs) == 1:
            return True
        if len(names) == 1:  # a plain function: the class part is left out
            return (len(globs) == 2 and fnmatchcase(names[0], globs[1])) or (
                len(globs) == 3 and globs[1] == "*" and fnmatchcase(names[0], globs[2])
            )
        return len(names) >= len(globs) - 1 and all(map(fnmatchcase, names, globs[1:]))

    def applies(self, version: str) -> bool:
        """Is the entry meant for a checkout of this version? One of unknown version is taken as the newest."""
        if not self.when:
            return True
        try:
            return SpecifierSet(self.when, prereleases=True).contains(Version(re.split(r"[+a ]", version)[0]))
        except InvalidVersion:
            return True


@dataclass(frozen=True)
class Missing:
    """A failure that only says what this machine lacks: a pattern of its first line, and the reason to give."""

    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True)
class Suite:
    """A project whose tests are mapped, and how they are run."""

    name: str
    backend: str
    target: str
    package: str  # the installed package that the tests are about; empty: the checkout itself, nothing is installed
    roots: tuple[str, ...]  # files and folders of the checkout that hold the mapped tests
    path: tuple[str, ...]  # folders of the checkout that its tests expect on sys.path
    signs: tuple[str, ...]  # files and folders by which a checkout is recognized
    version: str  # the file of the checkout that holds its version
    helpers: tuple[str, ...] = ()  # named like test files, without tests
    arguments: tuple[str, ...] = ()  # for pytest
    conftest: bool = True
    bootstrap: str = ""  # what child.py does before the tests are imported
    ladder: str = ""  # whose rungs a failing test is run under; empty: none
    batch: int = 1  # files of one folder that share a process, where upstream runs them so, too
    # Modules to import once, for all files ("") and for those with a word in their text; children are forks of the process
    # that did so. Empty: they are new interpreters.
    preload: Mapping[str, list[str]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StageMap:
    """The suite, its entries, and the failures that only say what is missing."""

    suite: Suite
    entries: tuple[Entry, ...]
    missing: tuple[Missing, ...] = ()

    def find(self, test: str) -> Entry | None:
        """The most specific entry that selects a test, or a file by its file part."""
        file = test.partition("::")[0]
        return max(
            (entry for entry in self._of_file(file) if entry.selects(test)),
            key=lambda entry: entry.specificity,
            default=None,
        )

    def find_file(self, file: str) -> Entry | None:
        """The entry for a file as a whole: the most specific one with nothing but a file part."""
        whole = [entry for entry in self._of_file(file) if len(entry.parts) == 1]
        return max(whole, key=lambda entry: entry.specificity, default=None)

    def stages_of(self, file: str) -> set[Stage]:
        """Every stage to which a test of this file may belong."""
        return {entry.stage for entry in self._of_file(file)}

    def _of_file(self, file: str) -> list[Entry]:
        if file not in self._by_file:
            self._by_file[file] = [entry for entry in self.entries if fnmatchcase(file, entry.file)]
        return self._by_file[file]

    @cached_property
    def _by_file(self) -> dict[str, list[Entry]]:
        return {}

    def ambiguous(self) -> list[str]:
        """Globs that stand in the map twice: neither would be the more specific one."""
        seen: dict[tuple[str, str], str] = {}
        found = []
        for entry in self.entries:
            if (entry.tests, entry.when) in seen:
                found.append(f"{entry.tests} stands in {seen[entry.tests, entry.when]} and in {entry.source}")
            seen[entry.tests, entry.when] = entry.source
        return found


# --------------------------------------------------------------------------------------------- loading


def names(folder: Path = HOME) -> list[str]:
    return sorted(file.stem for file in folder.glob("*.toml"))


def load(name: str, version: str = "", folder: Path = HOME) -> StageMap:
    """The map of a suite, for a checkout of this version."""
    file = folder / f"{name}.toml"
    if not file.is_file():
        raise unknown("suite", name, names(folder))
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the map {file} is not TOML: {error}") from None
    suite = _suite(data.get("suite"), file.name)
    entries = [
        entry
        for index, one in enumerate(data.get("map", []), 1)
        for entry in _entries(one, f"{file.name} entry {index}")
    ]
    missing = [_missing(one, f"{file.name} missing {index}") for index, one in enumerate(data.get("missing", []), 1)]
    return StageMap(suite, tuple(entry for entry in entries if not version or entry.applies(version)), tuple(missing))


def _suite(data: Any, source: str) -> Suite:
    if not isinstance(data, dict):
        raise UsageError(f"the map {source} has no [suite] table")
    _known_keys(data, {one.name for one in fields(Suite)}, source)
    for key in ("name", "backend", "target", "package", "roots", "path", "signs", "version"):
        if key not in data:
            raise UsageError(f"the [suite] table of {source} lacks {key!r}")
    lists = {key: tuple(data.get(key, ())) for key in ("roots", "path", "signs", "helpers", "arguments")}
    return Suite(**{**data, **lists})


def _entries(data: Mapping[str, Any], source: str) -> Iterable[Entry]:
    _known_keys(data, ENTRY_KEYS, source)
    globs = data.get("tests", "")
    globs = [globs] if isinstance(globs, str) else globs
    if not globs or not all(globs):
        raise UsageError(f"{source}: an entry needs tests: file[::class[::test]], globs allowed")
    stage, needs = data.get("stage", ""), str(data.get("needs", "cpu")).split()
    if stage not in {one.value for one in STAGES}:
        raise unknown(f"stage in {source}", stage, [one.value for one in STAGES])
    for need in needs:
        if need not in NEEDS:
            raise unknown(f"need in {source}", need, NEEDS)
    if not data.get("checks"):
        raise UsageError(f'{source}: an entry says what its tests check: checks = "…"')
    try:
        SpecifierSet(data.get("when", ""))
    except InvalidSpecifier:
        raise UsageError(f'{source}: not a version condition: {data["when"]!r}; write e.g. when = ">=2.7"') from None
    for glob in globs:
        yield Entry(
            glob, Stage(stage), data["checks"], frozenset(needs), data.get("when", ""), data.get("why", ""), source
        )


def _missing(data: Mapping[str, str], source: str) -> Missing:
    _known_keys(data, MISSING_KEYS, source)
    try:
        return Missing(re.compile(data["pattern"]), data["reason"])
    except (KeyError, re.error) as error:
        raise UsageError(f"{source}: needs a pattern (a regular expression) and a reason: {error}") from None


def _known_keys(data: Mapping[str, Any], known: set[str], source: str) -> None:
    for key in data:
        if key not in known:
            raise unknown(f"key in {source}", key, known)
