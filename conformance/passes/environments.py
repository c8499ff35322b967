"""Python interpreters by torch version: those that are given, and for the rest environments that uv makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from conformance.errors import UsageError
from conformance.torch_versions import requirement
from conformance.virtualenvs import NOT_DECLARED, Recipe, make, suite_requirements

# Prints the version of torch that an environment has, and which of the named distributions it lacks.
ASK = """
import importlib.metadata as metadata, sys
have = {(one.name or "").lower().replace("_", "-"): one.version for one in metadata.distributions()}
print(have.get("torch", ""))
print(" ".join(name for name in sys.argv[1:] if name not in have))
"""


def installed(places: Iterable[str]) -> dict[str, str]:
    """Full version of torch → interpreter. A place is an interpreter, an environment, or a folder of environments. An environment has torch
    and what the suite needs; in a folder, those that have not are passed over."""
    found: dict[str, str] = {}
    for place in places:
        path = Path(place)
        candidates = [path] if not path.is_dir() else [path / "bin/python", *sorted(path.glob("*/bin/python"))]
        asked = {python: _ask(python) for python in candidates if python.exists()}
        if not asked:
            raise UsageError(f"no Python in {place}: give an interpreter, an environment or a folder of environments")
        usable = {version: str(python) for python, (version, lacking) in asked.items() if version and not lacking}
        if not usable:
            version, lacking = next(iter(asked.values()))
            raise UsageError(f"{place} lacks {lacking if version else 'torch'}: install that, or leave the place out")
        found = usable | found
    return found


def _ask(python: Path) -> tuple[str, str]:
    """The version of torch that an interpreter has, and what it lacks of what the suite needs; each empty where there is none."""
    names = [
        Requirement(text).name.lower().replace("_", "-") for text in suite_requirements() if text not in NOT_DECLARED
    ]
    done = subprocess.run([python, "-c", ASK, *names], capture_output=True, text=True)
    version, _, lacking = done.stdout.partition("\n")
    return version.strip(), lacking.strip()


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
