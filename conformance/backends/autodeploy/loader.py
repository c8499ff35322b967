"""Finds AutoDeploy in the three forms that people have it, and imports it.

installed    a built `tensorrt_llm`
standalone   the package that TensorRT-LLM's own script generates: `llmc`, later `paragraf`
checkout     the source tree of TensorRT-LLM, nothing built: no `__init__` of TensorRT-LLM runs, and whatever
             needs the C++ parts is answered as missing, which AutoDeploy knows how to live with

A checkout that is named (`TRTLLM_SRC`, `--trtllm-src`) is taken before all others, since somebody asked for it; the one
that `conformance get autodeploy` made is taken last.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from conformance.backends.autodeploy import fake_cuda, seam
from conformance.errors import UsageError, first_line

VARIABLE = "TRTLLM_SRC"
INSIDE = Path("tensorrt_llm") / "_torch" / "auto_deploy"
STANDALONE = ("llmc", "paragraf")
MEND = f"set {VARIABLE} to a TensorRT-LLM checkout, or run `conformance get autodeploy`"


class Missing(UsageError):
    """AutoDeploy is not here, or not whole; the one line says how to get it."""


@dataclass(frozen=True)
class Found:
    """One AutoDeploy, not yet imported."""

    form: str  # installed | standalone | checkout
    package: str  # what its modules are called: tensorrt_llm._torch.auto_deploy, llmc, …
    path: Path  # the folder of that package
    version: str

    @property
    def root(self) -> Path:
        """The folder to search for sources: the checkout, or the package."""
        return self.path.parents[2] if self.package.startswith("tensorrt_llm") else self.path

    def __str__(self) -> str:
        return f"{self.form} {self.package.split('.')[0]} {self.version}"


# ------------------------------------------------------------------------------------------------ finding


def find(source: str | Path | None = None) -> Found:
    """The AutoDeploy to use, or `Missing` with the line that says how to get one."""
    named = source or os.environ.get(VARIABLE)
    if named:
        return checkout(Path(named).expanduser())
    found = installed() or standalone()
    if found:
        return found
    if (cached := cache_folder()).exists():
        return checkout(cached)
    raise Missing(f"AutoDeploy is not installed: {MEND}")


def cache_folder() -> Path:
    """Where `conformance get autodeploy` keeps its clone."""
    base = os.environ.get("CONFORMANCE_CACHE") or Path.home() / ".cache" / "conformance"
    return Path(base).expanduser() / "TensorRT-LLM"


def installed() -> Found | None:
    """A `tensorrt_llm` on the path. The one on PyPI is a stub without AutoDeploy, and an unbuilt tree is a checkout."""
    folder = _package_folder("tensorrt_llm")
    if folder is None or not (folder / "_torch" / "auto_deploy").is_dir():
        return None
    if not any(folder.glob("bindings*")):
        return checkout(folder.parent)
    return Found("installed", seam.PACKAGE, folder / "_torch" / "auto_deploy", _version(folder))


def standalone() -> Found | None:
    for name in STANDALONE:
        folder = _package_folder(name)
        if folder is not None and (folder / "transform").is_dir():
            try:
                number = version(name)
            except PackageNotFoundError:
                number = "unknown version"
            return Found("standalone", name, folder, number)
    return None


def checkout(root: Path) -> Found:
    if not root.is_dir():
        raise Missing(f"no TensorRT-LLM checkout at {root}: no such folder; {MEND}")
    folder = root / INSIDE
    if not folder.is_dir():
        above = next((p for p in root.resolve().parents if (p / INSIDE).is_dir()), None)
        hint = f"did you mean {above}?" if above else f"it has no {INSIDE}; {MEND}"
        raise Missing(f"not a TensorRT-LLM checkout with AutoDeploy: {root}; {hint}")
    return Found("checkout", seam.PACKAGE, folder.resolve(), _version(root / "tensorrt_llm"))


def _package_folder(name: str) -> Path | None:
    """Where a package is, without running it; our own hollow packages do not count."""
    if getattr(sys.modules.get(name), "__conformance__", False):
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def _version(package: Path) -> str:
    """`1.3.0rc17 50ca49f8c5`, with `+` when the tree was edited."""
    file = package / "version.py"
    number = re.search(r"__version__\s*=\s*[\"']([^\"']+)", file.read_text()) if file.is_file() else None
    parts = [number.group(1) if number else "unknown version"]
    top = _git(package, "rev-parse", "--show-toplevel")
    if top and Path(top).resolve() == package.parent.resolve():
        commit = _git(package, "rev-parse", "--short=10", "HEAD")
        edited = _git(package, "status", "--porcelain", "--untracked-files=no", "--", ".")
        parts += [commit + ("+" if edited else "")] if commit else []
    return " ".join(parts)


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# ------------------------------------------------------------------------------------------------ loading


class _Answer:
    """The last word on `tensorrt_llm.*` while a checkout is in use: open names go to the files, the rest is missing."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] != "tensorrt_llm":
            return None
        if any(name == opened or name.startswith(opened + ".") for opened in seam.OPEN):
            return None
        raise ModuleNotFoundError(f"No module named {name!r} (not in an unbuilt checkout)", name=name)


class Loaded:
    """An imported AutoDeploy. `with loaded.active():` around whatever runs its code; `loaded.seam` are its names."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.seam = seam.made(found.package, found.version, self.active)
        self._modules: dict[str, ModuleType] = {}
        self._depth = 0
        if found.form == "checkout":
            self._modules = _hollow_modules(found.root)

    @contextmanager
    def active(self) -> Iterator[None]:
        """While this is on, `tensorrt_llm` is the checkout's. Afterwards nothing of it is left in `sys.modules` or
        `sys.meta_path`, so that other code still gets the true answer to `import tensorrt_llm`."""
        if self.found.form != "checkout" or self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        finder = _Answer()
        others = {name: module for name, module in sys.modules.items() if _ours(name)}
        for name in others:
            del sys.modules[name]
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, finder)
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0
            sys.meta_path.remove(finder)
            self._modules = {name: module for name, module in sys.modules.items() if _ours(name)}
            for name in self._modules:
                del sys.modules[name]
            sys.modules.update(others)

    def module(self, name: str) -> ModuleType:
        """A module of AutoDeploy, by its name inside the package: `transform.interface`."""
        with self.active():
            return importlib.import_module(f"{self.found.package}.{name}" if name else self.found.package)

    def legacy(self, name: str) -> ModuleType:
        """A module of TensorRT-LLM's older passes: `remove_copy_pass`, `patterns.residual_add_norm`."""
        if self.found.form == "standalone":
            raise Missing(
                f"the legacy pass {name} is not in {self.found}: only a checkout or an installed tensorrt_llm has it"
            )
        with self.active(), fake_cuda.answers():
            try:
                return importlib.import_module(f"{seam.LEGACY}.{name}")
            except ImportError as error:
                raise Missing(f"the legacy pass {name} is not in {self.found}: {first_line(error)}") from None


def _ours(name: str) -> bool:
    return name == "tensorrt_llm" or name.startswith("tensorrt_llm.")


def _hollow_modules(root: Path) -> dict[str, ModuleType]:
    modules: dict[str, ModuleType] = {}
    for name in seam.HOLLOW:
        folder = root.joinpath(*name.split("."))
        if not folder.is_dir():
            continue
        module = ModuleType(name)
        module.__path__ = [str(folder)]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = module.__path__
        module.__conformance__ = True  # type: ignore[attr-defined]
        modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in modules:
            setattr(modules[parent], child, module)
    modules.update(_logger(modules["tensorrt_llm"]))
    return modules


def _logger(parent: ModuleType) -> dict[str, ModuleType]:
    """TensorRT-LLM's logger imports the `tensorrt` wheel; for its plain Python passes the standard one does."""
    module = ModuleType("tensorrt_llm.logger")
    module.logger = logging.getLogger("tensorrt_llm")  # type: ignore[attr-defined]
    module.logger.addHandler(logging.NullHandler())  # or it would speak on stderr when nobody listens
    parent.logger = module  # type: ignore[attr-defined]
    return {"tensorrt_llm.logger": module}


_loaded: Loaded | None = None


def load(source: str | Path | None = None) -> Loaded:
    """Import AutoDeploy, once per process: its custom ops cannot be registered twice."""
    global _loaded
    found = find(source)
    if _loaded is not None:
        if _loaded.found.path != found.path:
            raise UsageError(f"this process already uses {_loaded.found.path}: start a new one for {found.path}")
        return _loaded
    loaded = Loaded(found)
    try:
        with _quiet():
            for name in ("", "transform.library", "export", "compile", "transform.optimizer"):
                loaded.module(name)
    except ModuleNotFoundError as error:
        raise Missing(
            f"{found} needs {error.name!r}, which is not installed: pip install {_wheel(error.name)}"
        ) from None
    except Exception as error:
        raise Missing(f"{found} does not import here: {first_line(error)}") from None
    _loaded = loaded
    return loaded


@contextmanager
def _quiet() -> Iterator[None]:
    """What its dependencies have to say about a machine without a GPU is not for our users."""
    with warnings.catch_warnings(), patch.dict(os.environ):
        warnings.simplefilter("ignore")
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        yield


WHEELS = {
    "flashinfer": "flashinfer-python==0.6.12",
    "transformers": "transformers==5.5.4 'tokenizers<0.23'",
    "pydantic_settings": "pydantic-settings",
    "strenum": "StrEnum",
    "yaml": "PyYAML",
}


def _wheel(module: str | None) -> str:
    name = (module or "").split(".")[0]
    return WHEELS.get(name, name)
