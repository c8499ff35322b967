"""The long texts of a record in one compressed file beside it, to be published: `run.jsonl` → `run.texts.xz`.

The file is xz over JSON Lines, a text a line. A text is found by its digest, which is computed when the file is read, so
that a file that was changed has other texts and never a wrong one.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from conformance.errors import UsageError
from conformance.files import read_regular
from conformance.trace import digest

PACKED = ".xz"  # a record, too, may be kept compressed: `run.jsonl.xz`
MAX_PACKED = 64 << 20  # bytes of the file
MAX_UNPACKED = 512 << 20  # bytes of all texts


def packed_file(record: Path) -> Path:
    return beside(record, ".texts.xz")


def beside(record: Path, suffix: str) -> Path:
    """What belongs to a record has its name: that of `run.jsonl` for `run.jsonl.xz`, too."""
    return (record.with_suffix("") if record.suffix == PACKED else record).with_suffix(suffix)


def read_packed(record: Path) -> dict[str, str]:
    """The texts by digest. Empty where there is no such file; what is broken or too much is left out."""
    file = packed_file(record)
    if file.is_symlink() or not file.exists():
        return {}
    try:
        lines = _unpacked(read_regular(file, "the texts", MAX_PACKED)).split(b"\n")
    except UsageError:
        return {}
    found = {}
    for line in lines:
        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            continue  # half of a last line
        if isinstance(text, str):
            found[digest(text)] = text
    return found


def _unpacked(raw: bytes) -> bytes:
    """At most MAX_UNPACKED bytes: a small file can hold gigabytes."""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MAX_UNPACKED)
    try:
        return unpacker.decompress(raw, max_length=MAX_UNPACKED)
    except (lzma.LZMAError, EOFError, MemoryError):
        return b""


def write_packed(record: Path, texts: Iterable[str]) -> Path:
    """Write the texts into the file beside the record, the same texts always as the same bytes; return the file."""
    lines = "\n".join(json.dumps(text) for text in sorted(set(texts)))
    file = packed_file(record)
    file.write_bytes(lzma.compress(lines.encode("ascii"), format=lzma.FORMAT_XZ, preset=6))
    return file
