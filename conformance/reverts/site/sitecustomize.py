"""Loads the modules of an overlay in place of the installed ones, in every interpreter that has this folder on PYTHONPATH.

`CONFORMANCE_OVERLAY` names a folder that holds changed files as they lie in site-packages: `torch/_dynamo/guards.py`. A changed module
keeps the name, the `__file__` and the line table of the installed one, so that Dynamo skips its frames as ever and nothing but its
code differs; `inspect` and tracebacks are told the changed text. Nothing on disk is changed, and no bytecode is kept.
Nothing but the standard library, and as little of it as can be: it runs at the start of every interpreter.
"""

import linecache
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

FOLDER = os.environ.get("CONFORMANCE_OVERLAY", "")


def changed_modules(folder: str) -> dict[str, str]:
    """Dotted name → changed file."""
    found = {}
    for parent, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".py"):
                inside = os.path.relpath(os.path.join(parent, file), folder)[:-3].split(os.sep)
                found[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = os.path.join(parent, file)
    return found


class Changed(SourceFileLoader):
    """The installed module's loader, with another text."""

    def __init__(self, name: str, path: str, instead: str) -> None:
        super().__init__(name, path)
        self.instead = instead

    def get_data(self, path: str) -> bytes:  # type: ignore[override]
        return super().get_data(self.instead if path == self.path else path)

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        lines = data.decode("utf-8").splitlines(keepends=True)
        linecache.cache[self.path] = (len(data), None, lines, self.path)  # no time of change: never looked up on disk
        return self.source_to_code(data, self.path)


class Overlay:
    """Finds changed modules; all others are found as ever."""

    def __init__(self, modules: dict[str, str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        instead = self.modules.get(name)
        if instead is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin:
            return None
        loader = Changed(name, spec.origin, instead)
        changed = ModuleSpec(name, loader, origin=spec.origin, is_package=spec.submodule_search_locations is not None)
        changed.submodule_search_locations = spec.submodule_search_locations
        changed.has_location = True
        return changed


def next_one() -> None:
    """The sitecustomize that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
    code = spec.loader.get_code("sitecustomize") if spec and isinstance(spec.loader, SourceFileLoader) else None
    if spec and code:
        exec(code, {"__name__": "sitecustomize", "__file__": spec.origin})


if FOLDER:
    sys.meta_path.insert(0, Overlay(changed_modules(FOLDER)))
next_one()
