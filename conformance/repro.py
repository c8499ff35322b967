"""A file that shows a defect by itself, and the text of an issue about it. It imports nothing of this project."""

from __future__ import annotations

import ast
import math
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WIDTH = 100
CURE_VARIABLE = "REPRO_CURED"  # set: the file applies what makes it right, and exits 0


@dataclass
class Report:
    """What is known of a defect."""

    title: str
    stage: str
    expected: str
    got: str
    versions: Mapping[str, str]
    culprit: str = ""
    cure: Sequence[str] = ()  # lines of Python that make the program right, if they run before it
    cure_words: str = ""
    prelude: str = ""  # Python that the program needs before it
    found: str = ""  # how stage and culprit were found
    first_bad: str = ""
    details: Mapping[str, str] = field(default_factory=dict)  # longer texts, by heading


def script_text(body: str, report: Report, guarded: bool = False, arguments: Sequence[str] = ()) -> str:
    """A script as a repro: what it shows, the lines that cure it, and the script itself, with the arguments that it was
    given. `guarded`: it runs in a process of its own, since it dies of a signal, does not end or exits with another
    code than 1; exit 1 then, too."""
    future, rest = _split_future(body)
    imports = ["import os"] + (["import subprocess"] if guarded else [])
    imports += ["import sys"] if guarded or arguments else []
    parts = [docstring(report), *future, *imports, ""]
    if guarded:
        parts += [GUARD.format(seconds=GUARD_SECONDS).strip(), ""]
    if report.prelude:
        parts += [report.prelude]
    if report.cure:
        parts += [
            f'if os.environ.get("{CURE_VARIABLE}"):  # with this it exits 0',
            *(f"    {line}" for line in report.cure),
            "",
        ]
    if arguments:
        parts += [f"sys.argv[1:] = {list(arguments)!r}", ""]
    return "\n".join([*parts, rest.strip("\n"), ""])


def after(prelude: str, body: str) -> str:
    """A script behind the lines that it needs before it."""
    future, rest = _split_future(body)
    return "\n".join([*future, prelude, rest])


GUARD_SECONDS = 60  # a repro that has not ended by then hangs
GUARD = """
if "REPRO_INSIDE" not in os.environ:  # what follows dies of a signal, does not end, or exits with another code
    try:
        inside = {{**os.environ, "REPRO_INSIDE": "1"}}
        code = subprocess.run([sys.executable, __file__], env=inside, timeout={seconds}).returncode
    except subprocess.TimeoutExpired:
        code = "no end after {seconds} s"
    print("ended with", code)
    sys.exit(0 if code == 0 else 1)
"""


def docstring(report: Report, *more: str) -> str:
    """What a repro shows, in what, and what its exit code says: its first lines. `more` are lines of its own."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    where = f"Stage: {report.stage}." + (f" Culprit: {report.culprit}" if report.culprit else "")
    lines = [report.title, "", *more, where, f"Seen with {versions}."]
    lines.append("Exits 1 while the defect is there, 0 once it is gone.")
    if report.cure:
        lines.append(f"With {CURE_VARIABLE}=1 it exits 0: {report.cure_words or 'the culprit is turned off'}.")
    text = wrapped("\n".join(lines)).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


def wrapped(text: str, indent: str = "") -> str:
    """Lines of at most `WIDTH`, where words allow; those that go on are indented."""
    lines = text.split("\n")
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def tensor_literal(value: torch.Tensor) -> str:
    """A tensor with its values, each number in as few digits as give the same number back."""
    import torch  # here: what only writes scripts down needs no torch, which reads the environment when it is imported

    def text(number: Any) -> str:
        if isinstance(number, list):
            return f"[{', '.join(map(text, number))}]"
        if not isinstance(number, float):
            return repr(number)
        if not math.isfinite(number):
            return f"float('{number}')"
        again = (float(f"{number:.{digits}g}") for digits in range(1, 18))
        return repr(next((n for n in again if torch.tensor(n, dtype=value.dtype).item() == number), number))

    return f"torch.tensor({text(value.detach().tolist())}, dtype={value.dtype})"


def _split_future(body: str) -> tuple[list[str], str]:
    """`from __future__` lines, which must come first, and the rest without its docstring."""
    tree = ast.parse(body)
    lines = body.splitlines()
    future: list[str] = []
    for place, node in enumerate(tree.body):
        text = (
            place == 0
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future.append(ast.unparse(node))
        elif not text:
            continue
        for number in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[number] = ""
    return future, "\n".join(lines)


def issue_text(report: Report, repro: Path) -> str:
    """The text of an issue: what, a minimal program, expected, got, stage, culprit, versions, how it was found."""
    env = {**report.versions, "python": platform.python_version(), "platform": platform.platform()}
    cure = f"\nIt is right with:\n\n```python\n{chr(10).join(report.cure)}\n```\n" if report.cure else ""
    first = f"\nFirst bad release: {report.first_bad}\n" if report.first_bad else ""
    more = "".join(
        f"\n## {name}\n\n```\n{text.strip()}\n```\n" for name, text in report.details.items() if text.strip()
    )
    return f"""# {report.title}

```python
{repro.read_text(encoding="utf-8").strip()}
```

**Expected**: {report.expected}

**Got**: {report.got}

**Stage**: {report.stage}

**Culprit**: {report.culprit or "not known"}
{cure}{first}
## How it was found

{report.found}
{more}
## Versions

{chr(10).join(f"- {name}: {version}" for name, version in env.items())}
"""
