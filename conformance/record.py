"""A run on disk: JSON Lines, a header and then a line a cell, appended as each ends. docs/record.md has the schema.

Long texts (graphs, sources, guards) lie in a folder beside the record, by digest: `run.jsonl` → `run.texts/<digest>.txt`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from conformance.errors import UsageError
from conformance.trace import digest
from conformance.verdict import Verdict

SCHEMA = "conformance/1"
FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+(?=[\w.+-]+\.(?:py|cpp|h|so)\b)")
VERDICTS = frozenset("pass fail fallback unsupported unavailable blocked xfail xpass error timeout".split())


@dataclass
class Run:
    """A record as read: what could not be read is in `problems`, one line each, and the rest is still there."""

    path: Path
    header: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        file = texts_folder(self.path) / f"{key}.txt"
        return file.read_text("utf-8", "replace") if file.is_file() else None


def texts_folder(record: Path) -> Path:
    return record.with_suffix(".texts")


# --------------------------------------------------------------------------------------------- reading


def read(path: Path | str) -> Run:
    """Reads a record of this schema or an older one. Not a record at all is the user's mistake."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the record {path}: {error.strerror}") from None
    if not raw.strip():
        raise UsageError(f"{path} is empty: not a record; make one with `conformance run --record {path.name}`")
    run = Run(path)
    for number, line in enumerate(_lines(raw), 1):
        value = _parse(line)
        if number == 1:
            run.header = _header(value, path)
        elif not isinstance(value, dict) or not isinstance(value.get("cell"), str):
            run.problems.append(f"{path.name} line {number} is half-written or not a cell: left out")
        else:
            if str(value.get("verdict")) not in VERDICTS:
                run.problems.append(f"{path.name} line {number}: unknown verdict {str(value.get('verdict'))[:40]!r}, from a newer suite?")
            if value["cell"] in run.cells:
                run.problems.append(f"{path.name} line {number} repeats the cell {value['cell'][:80]}: the later line counts")
            run.cells[value["cell"]] = value
    return run


def header(path: Path) -> dict[str, Any]:
    """The first line of a record alone: what it was made with."""
    try:
        with path.open("rb") as file:
            return _header(_parse(file.readline(1 << 20).decode("utf-8", "replace")), path)
    except OSError as error:
        raise UsageError(f"cannot read the record {path}: {error.strerror}") from None


def _lines(raw: bytes) -> Iterator[str]:
    for line in raw.decode("utf-8", "replace").split("\n"):
        if line.strip():
            yield line


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _header(value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict) or "schema" not in value:
        raise UsageError(f"{path} is not a conformance record: its first line is no header with a schema")
    schema = str(value["schema"])
    family, _, version = schema.partition("/")
    if family != "conformance" or not version.isdigit():
        raise UsageError(f"{path} has the schema {schema!r}; this suite reads conformance/1 and older")
    if int(version) > int(SCHEMA.partition("/")[2]):
        raise UsageError(f"{path} has the schema {schema!r}, from a newer suite; upgrade this one to read it")
    return value


def is_unexpected(line: Mapping[str, Any]) -> bool:
    """Does this line make a run fail? The engine says so; older records do not, and are judged by the verdict alone."""
    return bool(line.get("unexpected", Verdict(line["verdict"]).unexpected))


# --------------------------------------------------------------------------------------------- writing


class Writer:
    """Appends cells. A killed run loses nothing but the line being written; that is repaired when it is resumed."""

    def __init__(self, path: Path | str, header: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = Path(path)
        self.done: dict[str, dict[str, Any]] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if resume and self.path.exists() and self.path.stat().st_size:
            self.repaired = _repair(self.path)
            previous = read(self.path)
            _same_run(previous.header, header, self.path)
            self.done = previous.cells
            self._file: IO[str] = self.path.open("a", encoding="utf-8")
        else:
            self.repaired = False
            self._file = self.path.open("w", encoding="utf-8")
            self._write(dict(header))

    def add(self, line: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> None:
        """Write a line, and its texts beside the record. The first line of a cell counts: no cell is run twice in one record."""
        if line["cell"] in self.done:
            return
        kept = {name: keep_text(texts_folder(self.path), without_folders(text)) for name, text in (texts or {}).items() if text}
        line = {**line, "texts": kept} if kept else dict(line)
        self.done[line["cell"]] = line
        self._write(line)

    def _write(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _repair(path: Path) -> bool:
    """Cut a last line that was being written when the run was killed."""
    raw = path.read_bytes()
    if raw.endswith(b"\n"):
        return False
    with path.open("r+b") as file:
        file.truncate(raw.rfind(b"\n") + 1)
    return True


def _same_run(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    for key in ("suite", "env"):
        if old.get(key) != new.get(key):
            raise UsageError(f"cannot resume {path}: it was recorded with another {key}; start a new record")


def without_folders(text: str) -> str:
    """Evidence names files, not where somebody keeps them."""
    return FOLDERS.sub("", text)


def keep_text(folder: Path, text: str) -> str:
    """Write a text beside the record, once; give its digest."""
    key = digest(text)
    file = folder / f"{key}.txt"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as out:
            out.write(text)
        os.replace(temporary, file)
    return key
