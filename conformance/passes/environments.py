"""Python interpreters by torch version: those that are given, and for the rest environments that uv makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.version import Version

from conformance.errors import UsageError
from conformance.torch_versions import requirement
from conformance.virtualenvs import Recipe, make, suite_requirements

ASK = "import importlib.metadata as m; print(m.version('torch'))"


def installed(places: Iterable[str]) -> dict[str, str]:
    """Full version of torch → interpreter. A place is an interpreter, an environment, or a folder of environments."""
    found: dict[str, str] = {}
    for place in places:
        path = Path(place)
        if path.is_dir():
            several = [path / "bin/python", *sorted(path.glob("*/bin/python"))]
            candidates = [python for python in several if python.exists()]
        else:
            candidates = [path]
        if not candidates or not all(python.exists() for python in candidates):
            raise UsageError(f"no Python in {place}: give an interpreter, an environment or a folder of environments")
        asked = {python: subprocess.run([python, "-c", ASK], capture_output=True, text=True) for python in candidates}
        having = {done.stdout.strip(): str(python) for python, done in asked.items() if done.returncode == 0}
        if not having:
            raise UsageError(f"no torch in {place}: install it there, or leave this environment out")
        found |= having
    return found


def python_for(version: str, known: dict[str, str], say: Callable[[str], None] = lambda _: None) -> str:
    """An interpreter with this version of torch: the newest given one that fits, else an environment that uv makes."""
    prefix = tuple(version.split("."))
    fitting = [full for full in known if tuple(full.split("+")[0].split("."))[: len(prefix)] == prefix]
    if fitting:
        return known[max(fitting, key=Version)]
    wanted = requirement(version)
    try:
        return make(Recipe((wanted, *suite_requirements())), say)
    except LookupError as error:
        raise UsageError(f"{wanted} does not install: {error}; give an environment with --python") from None


def default_places() -> list[str]:
    """Environments that the user has named for every run: CONFORMANCE_ENVIRONMENTS, folders with `:` between."""
    return [place for place in os.environ.get("CONFORMANCE_ENVIRONMENTS", "").split(os.pathsep) if place]
