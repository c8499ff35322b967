"""Reading files that anybody may have made: only regular files, never more than a limit, and checked against a
schema."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from conformance.errors import UsageError

MAX_TOML = 4 << 20
MAX_JSON = 4 << 20
MAX_DEPTH = 32

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: Path, what: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. A FIFO, a device or a folder is refused in one line, and never waited for."""
    verb = "write" if flags & os.O_CREAT else "read"
    try:
        if os.path.lexists(path):
            _must_be_regular(os.stat(path).st_mode, path, what)
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot {verb} {what} {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        _must_be_regular(os.fstat(descriptor).st_mode, path, what)  # what was opened, not what was there before
    except UsageError:
        os.close(descriptor)
        raise
    return descriptor


def _must_be_regular(mode: int, path: Path, what: str) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(
            f"cannot read {what} {path}: it is {KINDS.get(stat.S_IFMT(mode), 'no file')}, not a regular file"
        )


def read_regular(path: Path, what: str, limit: int) -> bytes:
    """All bytes of a regular file of at most `limit` bytes."""
    with os.fdopen(open_regular(path, what), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise UsageError(
                f"cannot read {what} {path}: it has {size:,} bytes, and no such file has more than {limit:,}"
            )
        try:
            return file.read(limit)
        except OSError as error:
            raise UsageError(f"cannot read {what} {path}: {error.strerror}") from None


def read_toml(path: Path) -> tuple[dict[str, Any], bytes]:
    """The tables of a TOML file, and its bytes."""
    raw = read_regular(path, "the file", MAX_TOML)
    try:
        return tomllib.loads(raw.decode()), raw
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, nested without end
        raise UsageError(f"{path} is not TOML: {error}") from None


def read_json(path: Path, what: str, limit: int = MAX_JSON) -> Any:
    """The value of a JSON file."""
    return parse_json(read_regular(path, what, limit), f"{what} {path}")


def parse_json(raw: bytes | str, what: str) -> Any:
    """A JSON value that is not nested deeper than any of ours."""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}") from None
    if depth(value) > MAX_DEPTH:
        raise UsageError(f"{what} is nested deeper than {MAX_DEPTH} levels")
    return value


def depth(value: Any) -> int:
    """How deep lists and tables are nested in a value; counting ends just above the limit."""
    deep, layer = 0, [value]
    while layer and deep <= MAX_DEPTH:
        deep += 1
        inner = (one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, (dict, list)))
        layer = [each for values in inner for each in values]
    return deep


def mismatch(value: Any, schema: Any) -> str:
    """What is wrong with a value of JSON or TOML, in a few words; empty where it is of the schema (a type)."""
    try:
        msgspec.convert(value, schema)
    except msgspec.ValidationError as error:
        return str(error).replace("`", "").replace("$.", "").replace(" - at $", "")
    return ""
