"""Records as the reports read them, and how versions and machines are ordered and named."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import InvalidVersion, Version

from conformance import record, sanitize
from conformance.errors import UsageError
from conformance.report.address import address


class Machine(NamedTuple):
    """What a record was made on. Records of two machines are never one series."""

    machine: str
    cpu: str
    gpu: str


class Loaded(record.Run):
    """One record, with what its header says."""

    @property
    def label(self) -> str:
        return sanitize.name(self.path.stem)

    @property
    def env(self) -> Mapping[str, Any]:
        return self.header.get("env", {})

    @cached_property  # asked for once a cell
    def machine(self) -> Machine:
        return Machine(*(sanitize.name(self.env.get(part)) for part in Machine._fields))

    @property
    def suite(self) -> str:
        return sanitize.name(self.header.get("suite"))

    @property
    def started(self) -> str:
        return sanitize.name(self.header.get("started"))

    @property
    def dirty(self) -> bool:
        """Was it made from a checkout with changes that no commit has?"""
        return sanitize.name(self.header.get("commit")).endswith("-dirty")

    @property
    def torch(self) -> str:
        return sanitize.name(self.env.get("torch"))

    @cached_property
    def backends(self) -> set[str]:
        """Those that the record has cells of."""
        return {place.backend for name in self.cells if (place := address(name)) is not None}

    def versions(self, backend: str) -> dict[str, str]:
        """The backend's packages and their versions; torch alone where the header does not name the backend."""
        packages = self.env.get("backends", {}).get(backend) or ({"torch": self.torch} if self.torch else {})
        return {sanitize.name(key): sanitize.name(value) for key, value in packages.items()}

    def version(self, backend: str) -> str:
        """The one version that names a column: the backend's own, else the first that it lists."""
        packages = self.versions(backend)
        return packages.get(backend) or next(iter(packages.values()), "")

    def producer(self, stage: str, backend: str) -> str:
        """The revision of the code that made the facts of this stage (or of all stages); before schema 2, the
        suite's."""
        producers = self.header.get("producers", {})
        return sanitize.name(producers.get(f"{stage}/{backend}") or producers.get(backend)) or self.suite

    def world(self, backend: str) -> tuple[object, ...]:
        """All of a run that must be equal for the verdicts of a backend to have to be equal."""
        return (
            tuple(sorted(self.versions(backend).items())),
            self.machine,
            self.suite,
            self.header.get("expectations"),
        )


def load(paths: Iterable[Path | str]) -> list[Loaded]:
    """Records in the order in which they were started. One that cannot be read is a line among the problems of the
    others; when none can be read, that is the user's mistake."""
    runs: list[Loaded] = []
    unread: list[UsageError] = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            with no_collection():
                run = record.read(path)
        except UsageError as error:
            unread.append(error)
        else:
            runs.append(Loaded(path, run.header, run.cells, [sanitize.line(problem, 400) for problem in run.problems]))
    if not runs:
        raise unread[0] if unread else UsageError("no record given")
    runs[0].problems[:0] = [sanitize.line(error, 400) for error in unread]
    return sorted(runs, key=lambda run: run.started)


@contextmanager
def no_collection() -> Iterator[None]:
    """Records are hundreds of thousands of dicts without cycles; the collector would walk all of them again and
    again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def findings(line: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(kind, check, detail) of each finding of a line."""
    return [
        (
            sanitize.name(one.get("kind")),
            sanitize.name(one.get("check")),
            sanitize.text(one.get("detail"), sanitize.LINE),
        )
        for one in line.get("findings", ())
    ]


def plain_version(text: str) -> str:
    """Without the build: `2.14.1+cu130` → `2.14.1`."""
    return text.partition("+")[0]


def version_key(text: str) -> tuple[bool, Version, str]:
    """Versions in their order. What is no version comes first."""
    try:
        return True, Version(text.split()[0]), text
    except (InvalidVersion, IndexError):
        return False, Version("0"), text


def machine_names(runs: Iterable[Loaded]) -> dict[Machine, str]:
    """A short name for each machine: its kind, and the CPU or GPU where two of that kind differ in it. One machine
    needs none."""
    machines = sorted({run.machine for run in runs})
    if len(machines) == 1:
        return {machines[0]: ""}
    names = {}
    for one in machines:
        alike = [other for other in machines if other.machine == one.machine]
        cpu = one.cpu if len({other.cpu for other in alike}) > 1 else ""
        gpu = (one.gpu or "no GPU") if len({other.gpu for other in alike}) > 1 else ""
        names[one] = " ".join(part for part in (one.machine or "unknown machine", cpu, gpu) if part)
    return names
