"""A run on disk: JSON Lines, a header and then a line a cell, appended as each ends. docs/record.md has the schema.

Long texts (graphs, sources, guards) are beside the record, by digest: `run.jsonl` → `run.texts/<digest>.txt`, or all of
them in one file, `run.texts.xz` (packed_texts.py). A record that is only kept may be compressed: `run.jsonl.xz`. Here is what
a line holds, and `read`, the only function that reads a record; record_writer.py writes one.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any, Required, TypedDict

import msgspec

from conformance.errors import UsageError
from conformance.files import MAX_DEPTH, depth, mismatch, open_regular, read_regular
from conformance.json_line import plain
from conformance.packed_texts import PACKED, beside, read_packed
from conformance.verdict import Verdict

SCHEMA = "conformance/2"
VERDICTS = {verdict.value: verdict.unexpected for verdict in Verdict}

MAX_FILE = 1 << 30
MAX_LINE = 8 << 20
MAX_TEXT = 16 << 20
PROBLEMS = 1_000  # how many lines about broken lines are kept
_DIGEST = re.compile(r"[0-9a-f]{8,64}")


# ----------------------------------------------------------------------------------------------- schema

Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8,64}\Z")]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class FindingLine(TypedDict, total=False):
    kind: str
    check: str
    detail: str


class SaidLine(TypedDict, total=False):
    """The backend's own word of how a stage ended, before expectations."""

    verdict: str
    reason: str


class CellLine(TypedDict, total=False):
    """One cell. Keys that are not named here are kept and not checked."""

    cell: Required[str]
    verdict: Required[str]
    reason: str
    findings: list[FindingLine]
    said: SaidLine
    observation: dict[str, Any]
    texts: dict[str, Digest]
    seconds: Seconds
    micrograph: str
    url: str
    upstream: list[str]
    title: str
    cause: str
    unexpected: bool
    reused: bool


class Environment(TypedDict, total=False):
    torch: str
    python: str
    machine: str
    system: str
    cpu: str
    gpu: str
    threads: int
    backends: dict[str, dict[str, str]]


class Header(TypedDict, total=False):
    schema: Required[str]
    suite: str
    commit: str
    env: Environment
    producers: dict[str, str]
    expectations: str
    argv: list[str]
    started: str


# What a line or header without the key means.
_CELL_DEFAULTS = {"reason": str, "findings": list, "observation": dict, "texts": dict, "seconds": float}
_HEADER_DEFAULTS = {"suite": str, "env": dict, "producers": dict, "expectations": str, "argv": list, "started": str}


@dataclass(eq=False)
class Run:
    """A record as read. Every line and the header are of the schema; what was not is in `problems`, one line each."""

    path: Path
    header: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @cached_property
    def packed(self) -> dict[str, str]:
        """The texts of the compressed file beside the record, by digest."""
        return read_packed(self.path)

    def text(self, key: str) -> str | None:
        """The long text with this digest, from the folder or the file beside the record. None where there is none, or
        where the file does not have that digest."""
        if not is_digest(key):
            return None
        file = texts_folder(self.path) / f"{key}.txt"
        try:
            raw = b"" if file.is_symlink() else read_regular(file, "the text", MAX_TEXT)
        except UsageError:
            return self.packed.get(key)
        return raw.decode("utf-8", "replace") if hashlib.sha256(raw).hexdigest().startswith(key) else None


def texts_folder(record: Path) -> Path:
    return beside(record, ".texts")


def is_digest(value: Any) -> bool:
    """A digest names a file, so nothing else may: no separators, no dots."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def is_unexpected(line: Mapping[str, Any]) -> bool:
    """Does this cell make a run fail? The engine's own word where the line has it; else it follows from the verdict."""
    said = line.get("unexpected")
    return said if isinstance(said, bool) else VERDICTS.get(line.get("verdict", ""), False)


# ---------------------------------------------------------------------------------------------- reading


def read(path: Path | str) -> Run:
    """The record in a file, of this schema or an older one. A file that is no record is the user's mistake; a line of
    it that is no cell is left out and named in `problems`."""
    path = Path(path)
    run = Run(path)
    with _opened(path) as file:
        lines = _lines(file, path)
        run.header = _header(next(lines, (0, None))[1], path)
        for number, raw in lines:
            if (problem := _add(run, raw)) and len(run.problems) < PROBLEMS:
                run.problems.append(f"{path.name} line {number}{problem}")
    return run


def header(path: Path) -> dict[str, Any]:
    """The header of a record alone: what the record was made with."""
    with _opened(path) as file:
        return _header(next(_lines(file, path), (0, None))[1], path)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A record, or one that was compressed (`run.jsonl.xz`)."""
    with os.fdopen(open_regular(path, "the record"), "rb") as file:
        if path.suffix != PACKED:
            _at_most(os.fstat(file.fileno()).st_size, path)
            yield file
            return
        try:
            with lzma.open(file) as unpacked:
                yield unpacked
        except (lzma.LZMAError, EOFError):
            raise UsageError(f"cannot read the record {path}: it is not whole, or no file of xz") from None


def _at_most(size: int, path: Path) -> None:
    if size > MAX_FILE:
        raise UsageError(f"cannot read the record {path}: it has {size:,} bytes, and a record has at most {MAX_FILE:,}")


def _lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Each line that is not blank, with its number; None for one that is too long."""
    number = size = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        size += len(raw)
        if len(raw) <= MAX_LINE:
            if raw.strip():
                yield number, raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        else:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE)
                size += len(raw)
                _at_most(size, path)
            yield number, None
        _at_most(size, path)  # of a compressed one: a small file can hold gigabytes


def _add(run: Run, raw: bytes | None) -> str:
    """Add the line's cell to the run; return what is wrong with it."""
    if raw is None:
        return f" is longer than {MAX_LINE:,} bytes: left out"
    value = _decode(raw)
    if not isinstance(value, dict) or "cell" not in value:
        return " is half-written or not a cell: left out"
    value = {key: inner for key, inner in value.items() if inner is not None}
    if problem := mismatch(value, CellLine):
        return f" is not a cell ({problem}): left out"
    for key, make in _CELL_DEFAULTS.items():
        if key not in value:
            value[key] = make()
    repeated, word = value["cell"] in run.cells, value["verdict"]
    run.cells[value["cell"]] = value
    if word not in VERDICTS:
        return f": unknown verdict {word[:40]!r}, from a newer suite?"
    return f" repeats the cell {value['cell'][:80]}: the later line counts" if repeated else ""


def _decode(raw: bytes) -> Any:
    """The JSON value of a line; None where it is none or nested too deep. NaN and infinities become text."""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):  # msgspec is strict: json reads NaN, and half a surrogate pair
        try:
            value = plain(json.loads(raw.decode("utf-8", "replace"), parse_constant=str))
        except (ValueError, RecursionError):
            return None
    brackets = raw.count(b"[") + raw.count(b"{")
    return value if brackets <= MAX_DEPTH or depth(value) <= MAX_DEPTH else None


def _header(raw: bytes | None, path: Path) -> dict[str, Any]:
    if raw is None:
        raise UsageError(f"{path} is empty: not a record; make one with `conformance run --record {path.name}`")
    value = _decode(raw)
    if not isinstance(value, dict) or "schema" not in value:
        raise UsageError(f"{path} is not a conformance record: its first line is no header with a schema")
    family, _, version = str(value["schema"]).partition("/")
    newest = SCHEMA.partition("/")[2]
    if family != "conformance" or not re.fullmatch(r"[0-9]{1,6}", version):
        raise UsageError(f"{path} has the schema {str(value['schema'])[:80]!r}; this suite reads {SCHEMA} and older")
    if int(version) > int(newest):
        raise UsageError(f"{path} has the schema {value['schema']!r}, from a newer suite; upgrade this one to read it")
    value = {key: inner for key, inner in value.items() if inner is not None}
    if isinstance(value.get("env"), dict):
        value["env"] = {key: inner for key, inner in value["env"].items() if inner is not None}
    if problem := mismatch(value, Header):
        raise UsageError(f"{path} is not a conformance record: its header is not of the schema ({problem})")
    return {**{key: make() for key, make in _HEADER_DEFAULTS.items()}, **value}
