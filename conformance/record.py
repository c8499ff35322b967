"""A run on disk: JSON Lines, a header and then a line a cell, appended as each ends. docs/record.md has the schema.

Long texts (graphs, sources, guards) are beside the record, by digest: `run.jsonl` → `run.texts/<digest>.txt`, or all of
them in one file, `run.texts.xz` (packed_texts.py). A record that is only kept may be compressed: `run.jsonl.xz`. `read` is
the only function that reads a record, and `Writer` the only class that writes one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import lzma
import math
import os
import re
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any, Required, TypedDict

import msgspec

from conformance.errors import UsageError, encodable
from conformance.files import MAX_DEPTH, depth, mismatch, open_regular, read_regular
from conformance.packed_texts import PACKED, beside, read_packed
from conformance.trace import digest
from conformance.verdict import Verdict

SCHEMA = "conformance/2"
VERDICTS = {verdict.value: verdict.unexpected for verdict in Verdict}
FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:py|cpp|h|so)\b)")

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


# ---------------------------------------------------------------------------------------------- writing


class Writer:
    """Appends cells to a record, which it locks. A killed run loses nothing but the line being written; `resume`
    removes that line and goes on. Where a line cannot be written, the record is valid up to the line before it.
    `keep`: hold the lines in memory, as `done`; without it only their names, for records of a hundred thousand cells."""

    def __init__(self, path: Path | str, header: Mapping[str, Any], *, resume: bool = False, keep: bool = True) -> None:
        self.path, self._keep = Path(path), keep
        if self.path.suffix == PACKED:
            raise UsageError(f"{path} is a compressed record, to be read: `xz -d {path}` first")
        self.done: dict[str, dict[str, Any]] = {}
        self.repaired = False
        self._file = _locked(self.path)
        _open.add(self)
        self._end = 0
        try:
            if resume and os.fstat(self._file).st_size:
                self._resume(header)
            else:
                os.ftruncate(self._file, 0)
                self._write({**header, "schema": SCHEMA})
        except BaseException:
            self.close()
            raise

    def add(self, line: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> None:
        """Write a cell's line, and its long texts beside the record. The first line of a cell counts: a cell is never
        run twice in one record."""
        if line["cell"] in self.done:
            return
        written = {key: _without_folders(value) if key in _WORDS else value for key, value in line.items()}
        if texts is not None:
            folder = texts_folder(self.path)
            written["texts"] = {name: keep_text(folder, without_folders(text)) for name, text in texts.items() if text}
        self._write(written)
        self.done[line["cell"]] = written if self._keep else {}

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)  # the lock goes with it
            self._file = -1

    def _resume(self, header: Mapping[str, Any]) -> None:
        self.repaired = _repair(self._file)
        previous = read(self.path)
        _same_run(previous.header, header, self.path)
        if previous.problems:
            raise UsageError(f"cannot resume {self.path}: {previous.problems[0]}; start a new record")
        self.done = previous.cells if self._keep else {name: {} for name in previous.cells}
        self._end = os.fstat(self._file).st_size

    def _write(self, value: Mapping[str, Any]) -> None:
        raw = json_line(value) + b"\n"
        try:
            written = 0
            while written < len(raw):
                written += os.pwrite(self._file, raw[written:], self._end + written)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise _full(f"the record {self.path}", error) from None
        self._end += len(raw)


_open: weakref.WeakSet[Writer] = weakref.WeakSet()


def _leave_records_to_the_parent() -> None:
    """A forked process shares the lock: one that outlives a killed controller for a moment would keep --resume out."""
    for writer in list(_open):
        writer.close()


os.register_at_fork(after_in_child=_leave_records_to_the_parent)


def _locked(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write the record {path}: {error.strerror}") from None
    file = open_regular(path, "the record", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(
            f"{path} is being written by another run: wait for it, or give --record another file"
        ) from None
    except OSError:
        pass  # a file system without locks
    return file


def _repair(file: int) -> bool:
    """Cut a last line that was being written when the run was killed."""
    end = size = os.fstat(file).st_size
    while end:
        start = max(0, end - (1 << 16))
        at = os.pread(file, end - start, start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    os.ftruncate(file, end)
    return end != size


def _same_run(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    current = msgspec.json.decode(json_line({**new, "schema": SCHEMA}))
    for key in ("schema", "suite", "env", "producers"):
        before, after = old.get(key) or None, current.get(key) or None
        if isinstance(after, dict):
            after = {name: value for name, value in after.items() if value is not None}
        if before != after:
            raise UsageError(f"cannot resume {path}: it was recorded with another {key}; start a new record")


def _full(what: str, error: OSError) -> UsageError:
    kept = "what was recorded before is kept, and --resume goes on from there"
    return UsageError(f"cannot write {what}: {error.strerror or error}; {kept}")


def json_line(value: Mapping[str, Any]) -> bytes:
    """A line of a record, without its end. What JSON cannot say is made text."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False).encode()
    except (
        ValueError,
        TypeError,
        RecursionError,
    ):  # NaN, half a surrogate pair, a key that is no text, nesting without end
        return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode()


def plain(value: Any, level: int = 0) -> Any:
    """The value as JSON can say it: keys are text, NaN and infinities are text, half a surrogate pair is escaped."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return encodable(value)
    if level >= 2 * MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(inner, level + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner, level + 1) for inner in value]
    return encodable(str(value))


def without_folders(text: str) -> str:
    """Evidence names files, not where somebody keeps them."""
    return FOLDERS.sub("", text)


_WORDS = {"reason", "findings", "said", "observation"}  # what a compiler said, and may name files in


def _without_folders(value: Any) -> Any:
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, dict):
        return {key: _without_folders(inner) for key, inner in value.items()}
    return [_without_folders(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def keep_text(folder: Path, text: str) -> str:
    """Write a text into the folder, once, readable by this user only; return its digest."""
    if len(text) > MAX_TEXT // 4:
        text = text[: MAX_TEXT // 4] + "\n… cut here\n"
    key = digest(text)
    file = folder / f"{key}.txt"
    if file.exists():
        return key
    temporary = ""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as out:
            out.write(text.encode("utf-8", "surrogatepass"))
        os.replace(temporary, file)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise _full(f"a text beside the record, in {folder.name}", error) from None
    return key
