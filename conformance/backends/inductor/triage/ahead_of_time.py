"""Programs that a script exports, or compiles ahead of time, held at a rung as those of torch.compile are.

In eager, `torch.export.export` hands back the program as it was written. At the rungs at which graphs run, a package of
AOTInductor holds the exported program, and what is loaded from it is that program: as it was exported (`captured`), or
compiled with every compile held at the rung. From `unfused` on a package is what AOTInductor makes of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Proceed = Callable[..., Any]
GRAPHS = ("eager", "captured", "traced", "decomposed", "joint", "passed")  # rungs without generated code


class Uncompiled:
    """What stands for an exported program in eager: the program as it was written."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def module(self, *_: Any, **__: Any) -> Any:
        return self.program

    def run_decompositions(self, *_: Any, **__: Any) -> Uncompiled:
        return self


class AheadOfTime:
    """The subscribers that hold exported programs at a rung."""

    def __init__(self, rung: str) -> None:
        self.rung = rung
        self.packages: dict[str, Any] = {}  # programs by the path of their package

    def subscribers(self) -> dict[str, Proceed]:
        if self.rung not in GRAPHS:
            return {}
        own = {"export": self.export} if self.rung == "eager" else {}
        return {**own, "compile_package": self.compile_package, "load_package": self.load_package}

    def export(self, proceed: Proceed, program: Any, *_: Any, **__: Any) -> Uncompiled:
        return Uncompiled(program)

    def compile_package(self, proceed: Proceed, program: Any, *_: Any, package_path: Any = None, **__: Any) -> str:
        path = str(package_path or Path(tempfile.mkdtemp(), "package.pt2"))
        self.packages[path] = program
        if isinstance(program, Uncompiled):
            Path(path).touch()
        else:  # another process may load it
            torch.export.save(program, path)
        return path

    def load_package(self, proceed: Proceed, path: Any, *args: Any, **kwargs: Any) -> Any:
        program = self.packages.get(str(path))
        if program is None:
            program = torch.export.load(path)
        module = program.module()
        return module if self.rung in ("eager", "captured") else torch.compile(module)
