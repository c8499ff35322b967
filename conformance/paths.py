"""Where files are: the data that ships with the suite, and the folders that belong to the user.

In a checkout the data folders (`fixtures`, `stages`, `reports`) lie beside the package. In an installed wheel they lie inside it:
`conformance/data/fixtures`, `conformance/data/reports`, and `conformance/stages`, so that `pytest --pyargs conformance.stages` finds
the tests. State and caches never go there: they go to the user's own folders, or all of them below the folder that
the environment variable `CONFORMANCE_HOME` names.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parent
APP = "torch-compiler-conformance"


@cache
def data() -> Path:
    """The folder that holds `fixtures` and `reports`."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "fixtures" / "micrographs").is_dir() else PACKAGE / "data"


@cache
def checkout() -> Path | None:
    """The root of the git checkout that the package was imported from; None for an installed package."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "fixtures").is_dir() else None


def micrographs() -> Path:
    return data() / "fixtures" / "micrographs"


def core() -> Path:
    """The names of the micrographs that a run takes which names none."""
    return data() / "fixtures" / "core.txt"


def seeds() -> Path:
    """The names of the micrographs that the fuzzer mutates: those that can be written as straight-line programs."""
    return data() / "fixtures" / "seeds.txt"


def expectations() -> Path:
    return data() / "fixtures" / "expectations"


def reports() -> Path:
    """Published records: the baselines of a run."""
    return data() / "reports"


def stages() -> Path:
    """The tests of the suite, a module a stage."""
    return data() / "stages" if checkout() else PACKAGE / "stages"


def state(*parts: str) -> Path:
    """A folder for what a run leaves behind for the next one (records, findings). Made if it is missing, readable by its owner only."""
    return _private(_home("state", platformdirs.user_state_dir(APP)), parts)


def cache_folder(*parts: str) -> Path:
    """A folder for what can be made again (environments, reused cells). Made if it is missing, readable by its owner only."""
    return _private(_home("cache", platformdirs.user_cache_dir(APP)), parts)


def _home(name: str, default: str) -> Path:
    home = os.environ.get("CONFORMANCE_HOME")
    return Path(home) / name if home else Path(default)


def _private(folder: Path, parts: tuple[str, ...]) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for part in parts:
        folder = folder / part
        folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def import_path() -> str:
    """What a subprocess needs on PYTHONPATH to import the same package, and what this process had there."""
    return os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
