"""Records as the reports read them: every field may be missing, of another type, or full of nonsense."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance import record
from conformance.errors import UsageError
from conformance.report import sanitize

_DIGEST = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, eq=False)
class Loaded:
    """One record, with where it was and what was wrong with it."""

    path: Path
    header: Mapping[str, Any]
    cells: Mapping[str, Mapping[str, Any]]
    problems: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return sanitize.name(self.path.stem)

    @property
    def env(self) -> Mapping[str, Any]:
        return mapping(self.header.get("env"))

    @property
    def machine(self) -> str:
        return sanitize.name(self.env.get("machine"))

    @property
    def suite(self) -> str:
        return sanitize.name(self.header.get("suite"))

    @property
    def expectations(self) -> str:
        return sanitize.name(self.header.get("expectations"))

    @property
    def started(self) -> str:
        return sanitize.name(self.header.get("started"))

    def versions(self, backend: str) -> Mapping[str, str]:
        """What the backend said of itself; `torch` where it said nothing."""
        said = mapping(mapping(self.env.get("backends")).get(backend))
        found = {sanitize.name(key): sanitize.name(value) for key, value in said.items()}
        return found or ({"torch": sanitize.name(self.env.get("torch"))} if self.env.get("torch") else {})

    def version(self, backend: str) -> str:
        """The one version that names a column: the backend's own, else the first that it lists."""
        said = self.versions(backend)
        return said.get(backend) or next(iter(said.values()), "")

    def world(self, backend: str) -> tuple[object, ...]:
        """All of a run that must be equal for the verdicts of a backend to have to be equal."""
        return (tuple(sorted(self.versions(backend).items())), self.machine, self.suite, self.expectations)

    @cached_property
    def texts(self) -> Path:
        return record.texts_folder(self.path)

    def text_size(self, digest: str) -> int | None:
        try:
            return (self.texts / f"{digest}.txt").stat().st_size if is_digest(digest) else None
        except OSError:
            return None

    def text(self, digest: Any, limit: int) -> tuple[str, bool] | None:
        """A long text by its digest, and whether it was cut. None where the digest is none or the file is not there."""
        if not is_digest(digest):
            return None
        try:
            with open(self.texts / f"{digest}.txt", encoding="utf-8", errors="replace") as file:
                found = file.read(limit + 1)
        except OSError:
            return None
        return sanitize.text(found[:limit]), len(found) > limit


def load(paths: Iterable[Path | str]) -> list[Loaded]:
    """Records in the order in which they were started. One that cannot be read is a line among the problems of the others;
    when none can be read, that is the user's mistake."""
    found: list[Loaded] = []
    unread: list[UsageError] = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            with no_collection():
                run = record.read(path)
        except UsageError as error:
            unread.append(error)
        else:
            found.append(Loaded(path, run.header, run.cells, tuple(sanitize.line(said, 400) for said in run.problems)))
    if not found:
        raise unread[0] if unread else UsageError("no record given")
    if unread:
        found[0] = replace(found[0], problems=(*(sanitize.line(error, 400) for error in unread), *found[0].problems))
    return sorted(found, key=lambda run: run.started)


@contextmanager
def no_collection() -> Iterator[None]:
    """Records are hundreds of thousands of dicts without cycles; the collector would walk all of them again and again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def is_digest(value: Any) -> bool:
    """A digest names a file, so nothing else may: no separators, no dots."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def findings(line: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(kind, check, detail) of each finding of a line."""
    said = line.get("findings")
    if not said or not isinstance(said, list):
        return []
    found = [mapping(one) for one in said]
    return [(sanitize.name(one.get("kind")), sanitize.name(one.get("check")), sanitize.text(one.get("detail"), sanitize.LINE)) for one in found if one]


def seconds(line: Mapping[str, Any]) -> float:
    value = line.get("seconds")
    return float(value) if isinstance(value, (int, float)) and 0 <= value < 1e9 else 0.0


def plain_version(text: str) -> str:
    """Without the build: `2.14.1+cu130` → `2.14.1`."""
    return text.partition("+")[0]


def version_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Versions in their order: 2.9 before 2.11, 2.11.0a1 before 2.11.0."""
    parts = re.findall(r"\d+|[a-z]+", text.partition("+")[0].lower())
    keys = [(2, int(part[:12]), "") if part.isdigit() else (0, 0, part) for part in parts]
    return (*keys, (1, 0, ""))
