"""What is triaged: a program that can be run again and again, each time in a process of its own.

conformance triage script.py                  as people attach to issues: its own exit says whether the bug is there
conformance triage model.py:Block             compiled as it is and held against eager; the file says `example_inputs`
conformance triage runtime/inductor/cpu/NAME  a cell of the suite
"""

from __future__ import annotations

import ast
import os
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

from conformance.errors import UsageError, unknown


class Subject:
    """A program. `execute` runs it in this very process and leaves as the program does: by an exception, by
    SystemExit, or normally."""

    name: str
    backend: str = "inductor"
    target: str = "cpu"

    def execute(self) -> None:
        raise NotImplementedError

    def line_text(self, number: int) -> str:
        """A line of the program, without the space around it; "" where it has no text."""
        return ""


@dataclass
class Script(Subject):
    """A Python file. `shown` is the path as the user gave it: a variant of a script that lies elsewhere still runs as
    if it were there."""

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

    def imports_beside(self) -> dict[str, str]:
        """The environment in which a copy that lies elsewhere imports what lies beside the script."""
        folders = [str(self.shown.resolve().parent), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}

    def line_text(self, number: int) -> str:
        lines = self.text.splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def variant(self, path: Path, text: str) -> Script:
        """The same script with another text, which is written to the path: tracebacks and `inspect` read it there."""
        path.write_text(text, encoding="utf-8")
        return Script(path, self.shown, text, self.arguments, self.backend, self.target)


def script(file: Path, arguments: tuple[str, ...] = ()) -> Script:
    return Script(file.resolve(), file, file.read_text(encoding="utf-8"), arguments)


def of_object(file: Path, name: str, folder: Path) -> Script:
    """The script that stands for `FILE.py:OBJECT`: the file itself, and after it the object run in eager and
    compiled. It is written into the folder and runs as if it lay beside the file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not _is_main_block(node)]
    defined = {found for node in ast.walk(tree) for found in _defined(node)}
    if name not in defined:
        raise unknown(f"object in {file}", name, sorted(defined))
    if "example_inputs" not in ast.unparse(tree):
        raise UsageError(
            f"{file} gives no inputs: add `example_inputs = (tensor, …)` (or a function of that name) beside {name}"
        )
    source = Path(__file__).with_name("against_eager.py").read_text(encoding="utf-8").split("import copy", 1)[1]
    given = f'getattr({name}, "example_inputs", None) or globals().get("example_inputs")'
    text = f"{ast.unparse(tree)}\n\nimport copy{source}\n\nexit_against_eager({name}, {given})\n"
    path = folder / file.name
    path.write_text(text, encoding="utf-8")
    return Script(path, file, text)


def _is_main_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
