"""Compiled Python where none is kept.

In many containers PYTHONDONTWRITEBYTECODE is set and torch lies there as its wheel has it, without bytecode: every process compiles
thousands of sources of torch and Triton again. On such a host the first compile of a process took 10 to 15 s, most of it this. A run
starts many processes, so their bytecode goes to a folder of ours. Where torch's is there already, nothing is changed."""

from __future__ import annotations

import os
import sys
from importlib import util
from pathlib import Path

from conformance import paths


def keep(package: str = "torch") -> None:
    """For this process and all that it starts. To be called before the package is imported."""
    if not sys.dont_write_bytecode or sys.pycache_prefix or package in sys.modules or _is_compiled(package):
        return
    folder = str(paths.cache_folder("bytecode"))
    sys.pycache_prefix, sys.dont_write_bytecode = folder, False
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _is_compiled(package: str) -> bool:
    spec = util.find_spec(package)
    return spec is None or spec.origin is None or Path(util.cache_from_source(spec.origin)).exists()
