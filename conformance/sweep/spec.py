"""What a sweep is asked to do: environments and, for each, the work. Read from a TOML file, from flags, or from both."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from packaging.version import Version

from conformance.errors import UsageError
from conformance.files import mismatch, read_toml
from conformance.plan import THREADS
from conformance.torch_versions import requirement, versions
from conformance.virtualenvs import Recipe, install_options, suite_requirements

NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}")
NIGHTLY = re.compile(r"nightly(?:-(\d{1,2}))?")
FORMS = "2.14.1, 2.14, 2.11..2.15 or nightly"
FILES = ("folder", "expectations", "database")  # keys of the work that name a file: relative to the TOML file


class Work(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is run in an environment.

    kind         cells, ops, selftest, fuzz, or a class of your own, MODULE:CLASS (kinds.Kind)
    backends     compilers (none: those that are installed there)
    stages       stages (none: all)
    targets      cpu, cuda, sm_90 … (none: each backend's own)
    micrographs  globs; for selftest: globs of faults; for ops: globs of operators
    folder       a folder of your own micrographs
    expectations a folder of your own expectations
    baseline     are facts held against recorded runs of the same version?
    timeout      seconds that one case may take
    memory       GiB that the process of one case may take
    threads      the number of threads that compiles see
    plugins      modules that are loaded before the first compile
    fresh        measure every case, even where nothing changed since it was last measured
    dtypes       ops: float32, int8 … (none: all)
    forms        ops: transposed, special, errors … (none: the layouts)
    samples      ops: so many samples of an operator in a dtype
    sessions     fuzz: so many sessions, each with a seed of its own
    minutes      fuzz: how long each session takes
    database     fuzz: where all sessions keep their failing examples: a folder that every node sees, or redis://HOST:PORT
    """

    kind: str = "cells"
    backends: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    micrographs: tuple[str, ...] = ()
    folder: str = ""
    expectations: str = ""
    baseline: bool = True
    timeout: float = 300.0
    memory: float = 0.0
    threads: int = THREADS
    plugins: tuple[str, ...] = ()
    fresh: bool = False
    dtypes: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    samples: int = 3
    sessions: int = 4
    minutes: float = 5.0
    database: str = ""


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One environment of a sweep.

    name         of its record and its column
    packages     requirements that uv installs, beside what the suite needs
    interpreter  a Python that exists and has everything: nothing is installed
    python       the Python of the environment that is made: a version such as 3.12
    index_url    in place of PyPI
    indexes      asked beside PyPI; the newest version counts
    wheels       a folder of wheels
    pre          pre-releases, too
    trtllm_src   a TensorRT-LLM checkout, for AutoDeploy
    commit       of that checkout: its tree is unpacked beside it, the checkout itself is not touched
    variables    environment variables
    work         what is run there, where it differs from the sweep's own
    """

    name: str
    packages: tuple[str, ...] = ()
    interpreter: str = ""
    python: str = ""
    index_url: str = ""
    indexes: tuple[str, ...] = ()
    wheels: str = ""
    pre: bool = False
    trtllm_src: str = ""
    commit: str = ""
    variables: dict[str, str] = {}
    work: Work = Work()

    def recipe(self) -> Recipe:
        options = install_options(self.index_url, self.indexes, self.wheels, self.pre)
        return Recipe((*self.packages, *suite_requirements()), self.python, options)

    def made_of(self) -> str:
        """In a line of the plan."""
        made = self.interpreter or " ".join(self.packages)
        where = [*([self.index_url] if self.index_url else []), *self.indexes, *([self.wheels] if self.wheels else [])]
        parts = [made, f"from {', '.join(where)}" if where else "", f"python {self.python}" if self.python else ""]
        return ", ".join(filter(None, [*parts, f"{self.trtllm_src} {self.commit[:12]}".strip()]))


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """All environments, in the order in which they are run."""

    environments: tuple[Environment, ...]

    def checked(self) -> Sweep:
        if not self.environments:
            raise UsageError(
                "a sweep needs environments: --torch 2.11..2.15, --python NAME=PATH, or a TOML file with them"
            )
        seen: set[str] = set()
        for one in self.environments:
            if not NAME.fullmatch(one.name):
                raise UsageError(
                    f"the environment's name {one.name!r} must be letters, digits, '.', '_', '+' and '-': it names a file"
                )
            if one.name in seen:
                raise UsageError(f"two environments are called {one.name}: give each a name of its own")
            if bool(one.interpreter) == bool(one.packages):
                raise UsageError(
                    f"environment {one.name}: give it either packages to install or an interpreter that exists"
                )
            seen.add(one.name)
        return self


# ------------------------------------------------------------------------------------------------------ TOML


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    torch: str | list[str] = []
    work: dict[str, Any] = {}
    environment: list[dict[str, Any]] = []


def from_toml(path: Path, work: Work) -> Sweep:
    """The sweep in a file; `work` is what flags ask for, and the file's own words count before them."""
    tables, _ = read_toml(path)
    if problem := mismatch(tables, _File):
        raise UsageError(f"{path}: {problem}")
    file = msgspec.convert(tables, _File)
    common = _work(work, file.work, path, "work")
    listed = [file.torch] if isinstance(file.torch, str) else file.torch
    found = [one for words in listed for one in torch_environments(words, common)]
    found += [_environment(table, common, path, number) for number, table in enumerate(file.environment, 1)]
    return Sweep(environments=tuple(found)).checked()


def _work(base: Work, table: dict[str, Any], path: Path, where: str) -> Work:
    changed = {**msgspec.structs.asdict(base), **table}
    if problem := mismatch(changed, Work):
        raise UsageError(f"{path}: {where}: {problem}")
    for key in FILES:
        if key in table and "://" not in changed[key]:
            changed[key] = _beside(path, changed[key])
    return msgspec.convert(changed, Work)


def _environment(table: dict[str, Any], common: Work, path: Path, number: int) -> Environment:
    where = f"environment {table.get('name', number)}"
    own = table.get("work", {})
    if not isinstance(own, dict):
        raise UsageError(f"{path}: {where}: work must be a table")
    rest = {key: value for key, value in table.items() if key != "work"}
    if problem := mismatch(rest, Environment):
        raise UsageError(f"{path}: {where}: {problem}")
    for key in ("interpreter", "wheels", "trtllm_src"):
        if rest.get(key):
            rest[key] = _beside(path, rest[key])
    return msgspec.structs.replace(msgspec.convert(rest, Environment), work=_work(common, own, path, where))


def _beside(path: Path, name: str) -> str:
    """A relative name in a file is meant from that file."""
    return os.path.abspath(path.parent / Path(name).expanduser()) if name else name


# ----------------------------------------------------------------------------------------------------- flags


def torch_environments(
    words: str, work: Work, beside: Sequence[str] = (), where: Environment | None = None
) -> list[Environment]:
    """Environments of `2.11..2.15` (the newest patch of each), `2.14.1`, `2.14`, `nightly`, `nightly-1` (the one before), or several,
    with commas. A backend that is a package of its own gets an environment of its own, for it pins a torch."""
    base = where or Environment(name="_")
    found = []
    for label, pinned in (pin for word in words.split(",") for pin in _pins(word.strip(), base)):
        for suffix, backends, packages in _companions(work.backends):
            found.append(
                msgspec.structs.replace(
                    base,
                    name=f"torch-{label}{suffix}",
                    packages=(pinned, *packages, *beside),
                    work=msgspec.structs.replace(work, backends=backends),
                )
            )
    return found


def _pins(word: str, where: Environment) -> list[tuple[str, str]]:
    """Names and requirements of torch."""
    if match := NIGHTLY.fullmatch(word):
        version = nightly(where, int(match[1] or 0))
        return [(version, requirement(version))]
    return [(version, requirement(version)) for version in versions(word, FORMS)]


def nightly(where: Environment, back: int) -> str:
    """The newest nightly of the index, or the one so many before it."""
    from conformance.triage.script_bisect import in_index

    index = where.index_url or next(iter(where.indexes), "")
    if not index:
        raise UsageError("nightlies are on an index of their own: name it with --index URL")
    versions = [text for text in in_index("torch", index, pre=True) if Version(text).is_devrelease]
    if len(versions) <= back:
        raise UsageError(f"{index} has {len(versions)} nightlies of torch for this machine: there is no nightly-{back}")
    return versions[-1 - back]


def _companions(backends: tuple[str, ...]) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """(suffix of the name, backends, packages): those that come with torch together, each other one alone."""
    from conformance import backends as known
    from conformance.backends.base import Released

    apart: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    together = []
    for name in backends:
        backend = known.get(name) if name in known.names() else None  # one that is installed there and not here
        if isinstance(backend, Released) and backend.package not in ("", "torch"):
            apart.append((f"-{name}", (name,), (backend.package,)))
        else:
            together.append(name)
    return [*([("", tuple(together), ())] if together or not apart else []), *apart]
