"""What is triaged: a program that can be run again and again, each time in a process of its own.

conformance triage script.py                 a script as people attach to issues: its own exit code says whether the bug is there
conformance triage model.py:Block            a module or function, compiled as it is and held against eager; the file says `example_inputs`
conformance triage runtime/inductor/cpu/NAME a cell of the suite
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Subject:
    """A program. `execute` runs it in this very process and leaves as the program does: by an exception, by SystemExit, or normally."""

    name: str
    backend: str = "inductor"
    target: str = "cpu"

    def execute(self) -> None:
        raise NotImplementedError


@dataclass
class Script(Subject):
    """A Python file. `shown` is the path as the user gave it: a variant of a script that lies elsewhere still runs as if it were there."""

    path: Path
    shown: Path
    text: str
    arguments: tuple[str, ...] = ()
    backend: str = "inductor"
    target: str = "cpu"
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.shown.stem

    def execute(self) -> None:
        """As `python script.py` would: as `__main__`, with its folder first on the path."""
        sys.argv = [str(self.shown), *self.arguments]
        sys.path[0:1] = [str(self.shown.resolve().parent)]
        main = types.ModuleType("__main__")
        main.__dict__.update(__file__=str(self.path), __builtins__=__builtins__, __cached__=None)
        sys.modules["__main__"] = main
        exec(compile(self.text, str(self.path), "exec"), main.__dict__)

    def variant(self, path: Path, text: str) -> Script:
        """The same script with another text, which is written to the path: tracebacks and `inspect` read it there."""
        path.write_text(text, encoding="utf-8")
        return Script(path, self.shown, text, self.arguments, self.backend, self.target)


def script(file: Path, arguments: tuple[str, ...] = ()) -> Script:
    return Script(file.resolve(), file, file.read_text(encoding="utf-8"), arguments)


def as_main(values: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(values)
    return module
