"""Virtual environments made by uv: described by data, made once, kept under CONFORMANCE_HOME, safe for several makers at a time.

Bisecting makes one a version, a sweep one a column. An environment that was being made when its maker was killed is made
anew; a second maker of the same environment waits for the first.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from conformance import paths
from conformance.errors import UsageError

DISTRIBUTION = "torch-compiler-conformance"
NOT_DECLARED = (
    "setuptools",
)  # Inductor imports it where it builds C++; wheels of torch do not ask for it on every Python
NO_NETWORK = (
    " (no network? install from a folder with --wheels DIR, or name a Python that has it with --python NAME=PATH)"
)
NOT_THERE = re.compile(r"fetch|cache|connect|dns|network|offline", re.IGNORECASE)
FULL = re.compile(r"no space left on device|disk quota exceeded|os error 28", re.IGNORECASE)


@dataclass(frozen=True)
class Recipe:
    """What an environment is made of.

    packages  requirements, in the form that pip takes
    python    the interpreter: a version ("3.12") or a path; "": the one that runs this
    options   more words for `uv pip install`: indexes, a folder of wheels, pre-releases
    """

    packages: tuple[str, ...]
    python: str = ""
    options: tuple[str, ...] = ()

    @property
    def interpreter(self) -> str:
        return self.python or sys.executable

    def folder_name(self) -> str:
        """The same recipe has the same folder; the start of the name is for people."""
        parts = [self.python or "{}.{}".format(*sys.version_info), *self.packages, *self.options]
        label = re.sub(r"[^\w.]+", "-", self.packages[0] if self.packages else "python").strip("-")[:40]
        return f"{label}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:12]}"


def suite_requirements() -> tuple[str, ...]:
    """What the suite itself needs, without torch: read from pyproject.toml in a checkout, else from the installed package."""
    root = paths.checkout()
    if root is not None:
        declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    else:
        declared = metadata.requires(DISTRIBUTION) or []
    wanted = [Requirement(text) for text in declared]
    plain = [str(one) for one in wanted if one.name != "torch" and (one.marker is None or one.marker.evaluate())]
    return (*plain, *NOT_DECLARED)


def install_options(
    index_url: str = "", indexes: Sequence[str] = (), wheels: str = "", pre: bool = False
) -> tuple[str, ...]:
    """Words for `uv pip install`. `index_url` takes the place of PyPI; `indexes` are asked beside it, and the newest version counts."""
    words = ["--index-url", index_url] if index_url else []
    for index in indexes:
        words += ["--index", index]
    words += ["--index-strategy", "unsafe-best-match"] if indexes else []
    words += ["--find-links", wheels] if wheels else []
    return (*words, *(("--prerelease", "allow") if pre else ()))


def make(recipe: Recipe, say: Callable[[str], None] = lambda _: None, folder: Path | None = None) -> str:
    """The Python of the environment, which is made if it is not there. Raises LookupError, in one line, where it cannot be made."""
    folder = folder or paths.cache_folder("envs") / recipe.folder_name()
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / "ready").exists():
        return str(python)
    if shutil.which("uv") is None:
        raise UsageError(
            "environments are made with uv, which is not there: pip install uv (or name a Python that exists)"
        )
    try:
        with _alone(folder.with_suffix(".lock")):
            if not (folder / "ready").exists():
                say(f"installing {' '.join(recipe.packages[:1])}")
                shutil.rmtree(folder, ignore_errors=True)
                _uv("venv", "-q", "-p", recipe.interpreter, str(folder))
                _uv("pip", "install", "-q", "-p", str(python), *recipe.packages, *recipe.options)
                (folder / "ready").write_text("\n".join(recipe.packages))
    except OSError as error:
        raise LookupError(_full(folder) if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)) from None
    return str(python)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two makers of the same environment: the second waits. The lock goes with its process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _uv(*command: str) -> None:
    done = subprocess.run(["uv", *command], capture_output=True, text=True)
    if done.returncode:
        raise LookupError(_what_uv_said(done.stderr))


def _what_uv_said(text: str) -> str:
    """The line that names the cause: uv draws a tree, its root is general and its leaves are long."""
    lines = [line.strip(" ×╰─▶│├") for line in text.splitlines() if line.strip()]
    lines = [line.removeprefix("error: ").removeprefix("Caused by: ").removeprefix("cause: ") for line in lines]
    lines = [line for line in lines if line and not line.startswith(("warning:", "hint:", "help:"))]
    if FULL.search(text):
        return _full(paths.cache_folder("envs"))
    because = [n for n, line in enumerate(lines) if line.startswith(("Because", "No solution", "No interpreter"))]
    if because:
        at = because[-1]
        said = " ".join(lines[at:]) if lines[at].startswith("Because") else lines[at]
    else:
        said = next((line for line in lines if not line.lower().startswith(("using ", "request failed"))), "uv failed")
    said = re.sub(r"\s+", " ", re.sub(r"\bYou require\b", "you require", said))
    return f"{said[:200]}{NO_NETWORK if NOT_THERE.search(said) else ''}"


def _full(folder: Path) -> str:
    return f"no space left on the disk of {folder}: make room, or set CONFORMANCE_HOME to a folder on another disk"


@dataclass
class Environments:
    """Environments of one package by its version."""

    package: str
    beside: Sequence[str] = ()
    known: Mapping[str, str] = field(default_factory=dict)  # version → a Python that has it
    options: Sequence[str] = ()  # for `uv pip install`
    say: Callable[[str], None] = lambda _: None
    base: Sequence[str] | None = None  # installed beside the package in any case; None: what the suite needs

    def python(self, version: str) -> str:
        """A Python with this version; raises LookupError where it does not install."""
        if version in self.known:
            return self.known[version]
        base = suite_requirements() if self.base is None else self.base
        recipe = Recipe((f"{self.package}=={version}", *base, *self.beside), options=tuple(self.options))
        return make(recipe, self.say)
