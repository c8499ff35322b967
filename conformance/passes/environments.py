"""Python interpreters by torch version: those that are given, and for the rest environments that uv makes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.version import Version

from conformance.errors import UsageError
from conformance.virtualenvs import Environments

ASK = "import importlib.metadata as m; print(m.version('torch'))"
SUPPORTED = ("2.11", "2.12", "2.13", "2.14", "2.15")


def wanted(text: str) -> list[str]:
    """`2.11..2.15`, `2.14,2.15` or `2.15`, as minor versions."""
    found: list[str] = []
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        for each in (first, last) if dots else (first,):
            if not re.fullmatch(r"\d+\.\d+(\.\d+)?", each):
                raise UsageError(f"not a torch version: {each!r}; write 2.11..2.15 or 2.14,2.15")
        if not dots:
            found.append(first)
            continue
        one, two = Version(first), Version(last)
        inside = [v for v in SUPPORTED if one <= Version(v) <= two]
        if not inside:
            raise UsageError(f"no supported version between {first} and {last}: the suite knows {', '.join(SUPPORTED)}")
        found += inside
    return list(dict.fromkeys(found))


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
        for python in candidates:
            done = subprocess.run([str(python), "-c", ASK], capture_output=True, text=True)
            if done.returncode == 0:
                found[done.stdout.strip()] = str(python)
    return found


def python_for(version: str, known: dict[str, str], say: Callable[[str], None] = lambda _: None) -> str:
    """An interpreter with this version of torch: the newest given one that fits, else an environment that uv makes."""
    prefix = tuple(version.split("."))
    fitting = [full for full in known if tuple(full.split("+")[0].split("."))[: len(prefix)] == prefix]
    if fitting:
        return known[max(fitting, key=Version)]
    exact = version if version.count(".") == 2 else f"{version}.0"
    try:
        return Environments("torch", say=say).python(exact)
    except LookupError as error:
        raise UsageError(f"torch {exact} does not install: {error}; give an environment with --python") from None


def default_places() -> list[str]:
    """Environments that the user has named for every run: CONFORMANCE_ENVIRONMENTS, folders with `:` between."""
    return [place for place in os.environ.get("CONFORMANCE_ENVIRONMENTS", "").split(os.pathsep) if place]
