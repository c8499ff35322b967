"""Root causes that are known: public reports, and families of programs that fail for one reason.

    [[cause]]
    report = "pytorch#197859"                     # absent: no public report is known
    name = "an entry of __dict__ that shadows a submodule is not guarded"
    grammar = "scenarios"
    what = "value"                                # what differs (see `observed.difference`); absent: anything
    stage = "capture"                             # absent: any
    detail = "…"                                  # found in what is said of the difference; absent: anything
    choices = { change = "(sub|weight|state) shadowed" }

`grammar`, `what`, `stage` and the entries of `choices` are regular expressions for the whole word. They stand in `fixtures/causes/*.toml`,
a file a compiler.
The first entry that fits the smallest failing program names its cause; programs with one cause are one finding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from conformance import paths
from conformance.errors import UsageError
from conformance.files import mismatch, read_toml
from conformance.fuzz.program import Program

HOME = paths.data() / "fixtures" / "causes"


class Entry(TypedDict, total=False):
    """An entry as it is written."""

    report: str
    name: str
    grammar: str
    what: str
    stage: str
    detail: str
    choices: dict[str, str]


class File(TypedDict, total=False):
    cause: list[Entry]


@dataclass(frozen=True)
class Cause:
    name: str
    report: str = ""
    grammar: str = ".*"
    what: str = ".*"
    stage: str = ".*"
    detail: str = ""
    choices: tuple[tuple[str, str], ...] = field(default=())
    compiler: str = "inductor"  # the name of the file that lists it

    def fits(self, program: Program, stage: str, what: str, detail: str) -> bool:
        chosen = dict(program.choices)
        words = [(self.grammar, program.grammar), (self.what, what), (self.stage, stage)]
        words += [(pattern, chosen.get(slot, "")) for slot, pattern in self.choices]
        return all(re.fullmatch(pattern, word, re.S) for pattern, word in words) and bool(
            re.search(self.detail, detail)
        )

    def __str__(self) -> str:
        return f"{self.report}: {self.name}" if self.report else self.name


@cache
def load(folder: Path = HOME) -> tuple[Cause, ...]:
    """The causes of all files of the folder, in order."""
    found: list[Cause] = []
    for file in sorted(folder.glob("*.toml")):
        data, _ = read_toml(file)
        if problem := mismatch(data, File):
            raise UsageError(f"{file}: {problem}")
        for number, entry in enumerate(data.get("cause", []), 1):
            found.append(replace(_cause(entry, f"{file.name} entry {number}"), compiler=file.stem))
    return tuple(found)


def _cause(entry: Entry, source: str) -> Cause:
    if not entry.get("name"):
        raise UsageError(f"{source}: a cause needs a name")
    cause = Cause(**{**entry, "choices": tuple(entry.get("choices", {}).items())})  # type: ignore[arg-type]
    for pattern in (cause.grammar, cause.what, cause.stage, cause.detail, *dict(cause.choices).values()):
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{source}: {pattern!r} is no regular expression: {error}") from None
    return cause


def cause_of(program: Program, stage: str, what: str, detail: str, compiler: str = "inductor") -> Cause:
    """The known cause of a program that fails under a compiler; one of its own where none is known."""
    for cause in load():
        if cause.compiler == compiler and cause.fits(program, stage, what, detail):
            return cause
    if compiler != "inductor" and what in ("raises", "observed"):  # what a converter or a pass says names it best
        words = detail.partition("raises ")[2] or detail
        return Cause(f"{compiler}: {what}: {re.sub(r'0x[0-9a-f]+|[0-9]+', '#', words)[:200]}")
    kind = "" if program.rules.by_place else f"{what}: "
    return Cause(f"{program.grammar}: {kind}{'; '.join(program.cause) or 'as plain as can be'} ({stage})")
