"""What is known to be wrong: each entry names the cells, the kind, the versions and where upstream knows of it.

    [[expect]]
    cell = "runtime/torch_tensorrt/*/mutation.add_in_place"      # or a list of such globs
    kind = "lost_mutation"                       # several that come together: "lost_mutation lost_alias"; or: verdict = "fallback"
    when = "torch_tensorrt>=2.11,<2.15"          # versions of the header; `machine == aarch64` too; absent: always
    url = "https://github.com/…"                 # or: repro = "reports/repros/….py"
    why = "a plain input mutation is not written back"

Strict: a cell that passes although an entry names it is `xpass`, which fails the run; an entry that matches no cell of the
suite is an error.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import TypedDict

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from conformance import paths
from conformance.cell import WILDCARD
from conformance.errors import UsageError, unknown
from conformance.files import mismatch, read_toml
from conformance.stage import STAGES
from conformance.verdict import Finding, Kind, Verdict


class Entry(TypedDict, total=False):
    """An entry as it is written; `File` is a file of them."""

    cell: str | list[str]
    kind: str
    verdict: str
    when: str
    url: str
    repro: str
    why: str


class File(TypedDict, total=False):
    expect: list[Entry]


KEYS = frozenset(Entry.__annotations__)


@dataclass(frozen=True)
class Expectation:
    cell: str
    kind: str
    verdict: str
    when: str
    url: str
    why: str
    source: str

    @property
    def micrograph(self) -> str:
        """Its name, or a pattern of names."""
        return micrograph_of(self.cell)

    def holds(self, versions: Mapping[str, str]) -> bool:
        return all(_condition(part, versions, self.source) for part in self.when.split(";") if part.strip())

    def covers(self, verdict: Verdict, findings: Iterable[Finding]) -> bool:
        """Is this failure the one that is expected?"""
        if self.verdict:
            return verdict.value == self.verdict
        kinds = {finding.kind.value for finding in findings}
        return verdict in (Verdict.FAIL, Verdict.ERROR) and kinds == set(self.kind.split())


def micrograph_of(cell: str) -> str:
    return cell.split("/", 3)[3]


def _condition(text: str, versions: Mapping[str, str], source: str) -> bool:
    name, split = text.strip(), len(text.strip())
    for index, character in enumerate(name):
        if character in "<>=!~ ":
            split = index
            break
    package, rest = name[:split].strip(), name[split:].strip()
    have = versions.get(package)
    if have is None:
        return False
    if package == "machine":
        return have == rest.lstrip("= ").strip()
    try:
        wanted = SpecifierSet(rest, prereleases=True)
    except InvalidSpecifier:
        raise UsageError(
            f'{source}: not a version condition: {text.strip()!r}; write e.g. when = "torch>=2.11,<2.14"'
        ) from None
    try:
        return wanted.contains(Version(re.split(r"[+ ]", have)[0]))  # `2.14.1+cu130`, `1.3.0rc17 50ca49f8c5+`
    except InvalidVersion:
        return False  # of unknown version


@dataclass
class Expectations:
    entries: list[Expectation]
    versions: Mapping[str, str]
    digest: str = ""

    def judge(self, cell: str, verdict: Verdict, findings: list[Finding]) -> tuple[Verdict, Expectation | None]:
        """The verdict, in the light of what is expected of this cell."""
        near = self._by_micrograph.get(micrograph_of(cell), self._of_many)
        mine = [e for e in near if fnmatchcase(cell, e.cell) and e.holds(self.versions)]
        for entry in mine:
            if entry.covers(verdict, findings):
                return Verdict.XFAIL, entry
        if mine and verdict is Verdict.PASS:
            return Verdict.XPASS, mine[0]
        return verdict, None

    @cached_property
    def _of_many(self) -> list[Expectation]:
        """The entries whose micrograph is a pattern."""
        return [entry for entry in self.entries if WILDCARD.search(entry.micrograph)]

    @cached_property
    def _by_micrograph(self) -> dict[str, list[Expectation]]:
        """For each micrograph that is named by an entry, the entries that may be about it, in their order. A run asks for every cell, and
        there are more than a thousand entries."""
        patterns = {entry.micrograph for entry in self._of_many}
        found: dict[str, list[Expectation]] = {e.micrograph: [] for e in self.entries if e.micrograph not in patterns}
        for entry in self.entries:
            names = fnmatch.filter(found, entry.micrograph) if entry.micrograph in patterns else [entry.micrograph]
            for name in names:
                found[name].append(entry)
        return found

    def unmatched(self, targets: Mapping[str, Iterable[str]], micrographs: Iterable[str]) -> list[Expectation]:
        """The entries that name no cell of the suite: of these backends with their targets, and of these micrographs."""
        known = list(micrographs)
        named = set(known)

        @cache
        def is_a_micrograph(pattern: str) -> bool:
            return pattern in named or (
                bool(WILDCARD.search(pattern)) and any(fnmatchcase(name, pattern) for name in known)
            )

        @cache
        def is_a_place(stage: str, backend: str, target: str) -> bool:
            return any(fnmatchcase(one.value, stage) for one in STAGES) and any(
                fnmatchcase(name, backend) and any(fnmatchcase(one, target) for one in its)
                for name, its in targets.items()
            )

        def names_a_cell(entry: Expectation) -> bool:
            *place, micrograph = entry.cell.split("/", 3)
            return is_a_place(*place) and is_a_micrograph(micrograph)

        return [entry for entry in self.entries if not names_a_cell(entry)]


def load(folder: Path | str | None = None, versions: Mapping[str, str] | None = None) -> Expectations:
    """The expectations of a folder; without one, those that ship with the suite and with the backends of other packages."""
    entries: list[Expectation] = []
    hashed = hashlib.sha256()
    for file in [file for place in _folders(folder) for file in sorted(place.glob("*.toml"))]:
        data, raw = read_toml(file)
        hashed.update(raw)
        if problem := mismatch(data, File):
            raise UsageError(f"{file}: {problem}")
        for index, entry in enumerate(data.get("expect", []), 1):
            cells = entry["cell"] if isinstance(entry.get("cell"), list) else [entry.get("cell", "")]
            entries += [_entry({**entry, "cell": cell}, f"{file.name} entry {index}") for cell in cells]
    return Expectations(entries, versions or {}, hashed.hexdigest()[:12])


def _folders(folder: Path | str | None) -> list[Path]:
    if folder is not None:
        return [Path(folder)]
    from conformance import backends
    from conformance.backends.base import HasExpectations

    known = (backends.get(name) for name in backends.names())
    return [paths.expectations(), *(backend.expectations for backend in known if isinstance(backend, HasExpectations))]


def _entry(data: Mapping[str, str], source: str) -> Expectation:
    for key in data:
        if key not in KEYS:
            raise unknown(f"key in {source}", key, KEYS)
    cell, kind, verdict = data.get("cell", ""), data.get("kind", ""), data.get("verdict", "")
    if cell.count("/") < 3:  # the name of an upstream test holds slashes of its own
        raise UsageError(f"{source}: cell must be stage/backend/target/micrograph, globs allowed; it is {cell!r}")
    if bool(kind) == bool(verdict):
        raise UsageError(f"{source}: give either a kind or a verdict")
    for one in kind.split():
        if one not in {k.value for k in Kind}:
            raise unknown(f"kind in {source}", one, [k.value for k in Kind])
    if verdict and verdict not in {v.value for v in Verdict}:
        raise unknown(f"verdict in {source}", verdict, [v.value for v in Verdict])
    link = data.get("url") or data.get("repro")
    if not link or not data.get("why"):
        raise UsageError(f"{source}: an expectation needs a url or a repro, and a why")
    return Expectation(cell, kind, verdict, data.get("when", ""), link, data["why"], source)
