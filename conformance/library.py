"""The library: micrographs loaded from a folder (or a file), linted, by name."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from weakref import WeakSet

import torch

from conformance import paths, scenario
from conformance.cell import WILDCARD
from conformance.contract import Contract
from conformance.errors import UsageError, first_line
from conformance.fresh import FRESH
from conformance.inputs import Scalar, Tensor, Value
from conformance.micrograph import Micrograph
from conformance.processes import in_fork

PACKAGE = "conformance_micrographs"
_LINTED: WeakSet[type[Micrograph]] = WeakSet()


def load(folder: Path | str | None = None, globs: Iterable[str] = ("*",)) -> dict[str, type[Micrograph]]:
    """All micrographs of a folder (or of one file), by name; without one, those that ship with the suite. Folders inside are read,
    too: `upstream/mutation.py` holds the family `mutation` of `upstream.mutation`. Files that hold nothing that one of the globs can
    select are not imported: all of them take seconds."""
    folder = paths.micrographs() if folder is None else Path(folder)
    files = families(folder)
    wanted = [files[family] for family in families_of(globs, files)]
    return dict(sorted((cls.name(), cls) for file in wanted for cls in _micrographs(file, folder)))


def families(folder: Path | str | None = None) -> dict[str, Path]:
    """The file of each family. No file is imported."""
    folder = paths.micrographs() if folder is None else Path(folder)
    files = [folder] if folder.suffix == ".py" else sorted(folder.rglob("[!_]*.py"))
    if not files or not folder.exists():
        raise UsageError(f"no micrographs in {folder}: expected Python files with Micrograph classes")
    return {".".join(_inside(file, folder)): file for file in files}


def may_select(glob: str, family: str) -> bool:
    """May the glob select a name of this family? What stands before its first wildcard says so."""
    literal, inside = WILDCARD.split(glob, maxsplit=1)[0], f"{family}."
    return literal.startswith(inside) or inside.startswith(literal)


def families_of(globs: Iterable[str], known: Collection[str]) -> list[str]:
    """Those of the known families of which one of the globs may select a name. A whole name is of one family: a run of the core has a
    thousand names, and there are three hundred families."""
    globs = set(globs)
    patterns = {glob for glob in globs if WILDCARD.search(glob)}
    named = {name.rpartition(".")[0] for name in globs - patterns}
    return [family for family in known if family in named or any(may_select(glob, family) for glob in patterns)]


def may_name_one_of(glob: str, known: Collection[str]) -> bool:
    """May the glob, or the whole name, select a micrograph of one of these families?"""
    if WILDCARD.search(glob):
        return any(may_select(glob, family) for family in known)
    return glob.rpartition(".")[0] in known


def find(name: str, folder: Path | str | None = None) -> type[Micrograph]:
    """One micrograph: only its file is imported."""
    folder = paths.micrographs() if folder is None else Path(folder)
    file = folder if folder.suffix == ".py" else folder.joinpath(*name.split(".")[:-1]).with_suffix(".py")
    return next(cls for cls in _micrographs(file, folder) if cls.name() == name)


def _micrographs(file: Path, folder: Path) -> Iterator[type[Micrograph]]:
    module = _import(file, folder)
    for value in vars(module).values():
        ours = isinstance(value, type) and issubclass(value, Micrograph) and value.__module__ == module.__name__
        if ours and not value.__name__.startswith("_"):
            if value not in _LINTED:
                _lint(value, file)
                _LINTED.add(value)
            yield value


def must_run(library: Mapping[str, type[Micrograph]]) -> None:
    """A micrograph that eager cannot run says nothing about a compiler. They are run in a process of their own: one that has started
    OpenMP's threads cannot be forked any more."""
    if problem := in_fork(lambda: _first_problem(library)):
        raise UsageError(problem)


def _first_problem(library: Mapping[str, type[Micrograph]]) -> str:
    FRESH.prepare()  # for what is played elsewhere, while this process has no threads yet
    for name, cls in library.items():
        try:
            module = cls.build()
            module.play(scenario.eager(module), *cls.example())
        except Exception as error:
            if not cls.contract.runtime.raises:
                return f"{name} does not run in eager: {first_line(error)}"
    return ""


def _inside(file: Path, folder: Path) -> tuple[str, ...]:
    return file.relative_to(folder).with_suffix("").parts if folder.suffix != ".py" else (file.stem,)


def _import(file: Path, folder: Path) -> ModuleType:
    inside = _inside(file, folder)
    name = ".".join((PACKAGE, *inside))
    if (known := sys.modules.get(name)) is not None and getattr(known, "__file__", None) == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    root = folder.parent if folder.suffix == ".py" else folder
    # Packages, so that a class is found by its module's name: by a process that was forked before this import, too.
    for depth in range(len(inside)):
        package = ".".join((PACKAGE, *inside[:depth]))
        where = str(root.joinpath(*inside[:depth]))
        sys.modules.setdefault(package, ModuleType(package)).__path__ = [where]  # type: ignore[attr-defined]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{file} does not import: {first_line(error)}") from None
    return module


def _lint(cls: type[Micrograph], file: Path) -> None:
    if not isinstance(getattr(cls, "contract", None), Contract):
        raise UsageError(f"{file}: {cls.__name__} has no contract; add `contract = Contract(...)`")
    for index, spec in enumerate(cls.inputs):
        if not isinstance(spec, (Tensor, Scalar, Value)):
            raise UsageError(
                f"{file}: input {index} of {cls.__name__} is a {type(spec).__name__}, not a Tensor, Scalar or Value"
            )
        if isinstance(spec, Tensor):
            if not isinstance(spec.shape, str) or not isinstance(spec.dtype, torch.dtype):
                said = f"Tensor({spec.shape!r}, {spec.dtype!r})"
                raise UsageError(
                    f'{file}: input {index} of {cls.__name__} is {said}; write Tensor("b s 64", torch.float32)'
                )
            try:
                spec.sizes(cls.dims)
            except UsageError as error:
                raise UsageError(f"{file}: input {index} of {cls.__name__}: {error}") from None
    unknown_dims = ({*cls.contract.capture.recompiles} | {*cls.contract.capture.dynamic}) - {*cls.dims}
    if unknown_dims:
        raise UsageError(
            f"{file}: the contract of {cls.__name__} names the dims {sorted(unknown_dims)}; it has {sorted(cls.dims)}"
        )
