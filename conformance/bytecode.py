"""Compiled Python where none is kept.

In many containers PYTHONDONTWRITEBYTECODE is set and torch lies there as its wheel has it, without bytecode: every process compiles
thousands of sources of torch and Triton again. On such a host the first compile of a process took 10 to 15 s, most of it this. A run
starts many processes, so their bytecode goes to a folder of ours. Where torch's is there already, nothing is changed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, util
from pathlib import Path

from conformance import paths

# Half of what a run compiles where there is no bytecode yet, and what it imports last.
BESIDE = """
import compileall, importlib.util, os, sympy, networkx
for folder in importlib.util.find_spec("torch").submodule_search_locations:
    compileall.compile_dir(os.path.join(folder, "_inductor"), quiet=2)
"""


def keep(package: str = "torch") -> None:
    """For this process and all that it starts. To be called before the package is imported."""
    if not sys.dont_write_bytecode or sys.pycache_prefix or package in sys.modules or _is_compiled(package):
        return
    folder = str(paths.cache_folder("bytecode"))
    sys.pycache_prefix, sys.dont_write_bytecode = folder, False
    os.environ["PYTHONPYCACHEPREFIX"] = folder
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not _is_compiled("sympy"):  # by another process, while this one compiles the rest; it ends by itself
        with suppress(OSError):
            subprocess.Popen(
                [sys.executable, "-P", "-c", BESIDE],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )


@contextmanager
def importing() -> Iterator[None]:
    """Imports leave no garbage, and to look for it takes a fifth of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def import_alone(*names: str) -> None:
    """Import modules before several processes do so at a time, where there is no bytecode of them yet: each would compile their sources."""
    for name in names:
        if not _is_compiled(name):
            import_module(name)


def _is_compiled(module: str) -> bool:
    """Asked without importing the packages that the module is in."""
    package, *inside = module.split(".")
    spec = util.find_spec(package)
    if spec is None or spec.origin is None:
        return True
    source = Path(spec.origin).parent.joinpath(*inside).with_suffix(".py") if inside else Path(spec.origin)
    return Path(util.cache_from_source(str(source))).exists()
