"""Writes a record: the header, then a line a cell as each ends, with the long texts beside it. record.py reads it.

`Writer` is the only class that writes a record. What it writes names files without their folders.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from conformance.errors import UsageError
from conformance.files import open_regular
from conformance.json_line import json_line
from conformance.packed_texts import PACKED
from conformance.record import MAX_TEXT, SCHEMA, read, texts_folder
from conformance.trace import digest

FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:py|cpp|h|so)\b)")
_WORDS = {"reason", "findings", "said", "observation"}  # what a compiler said, and may name files in


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


def without_folders(text: str) -> str:
    """Evidence names files, not where somebody keeps them."""
    return FOLDERS.sub("", text)


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
