"""The facts and long texts of the cells, packed: compressed pieces inside the page, opened by it when a cell is."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

from conformance import sanitize
from conformance.report.columns import FACT_TEXT, SHORTEST, bounded
from conformance.report.load import findings
from conformance.report.matrix import Entry
from conformance.report.style import counted

CHUNK = 256  # cells in one piece
PIECE = 400_000  # characters of text in one piece, before it is compressed
TEXT = 2_000_000  # characters of one text
BUDGET = 64 << 20  # of all compressed texts

Reference = list[int]  # [piece, index in it]


class Evidence:
    """pieces: name → compressed JSON in base64. A text stands in them once, wherever it is used."""

    def __init__(self, texts: bool = True) -> None:
        self.pieces: dict[str, str] = {}
        self.missing = 0
        self.left_out = 0
        self._wanted = texts
        self._references: dict[str, Reference | None] = {}
        self._piece: list[dict[str, Any]] = []
        self._size = 0
        self._closed = 0  # pieces of texts
        self._room = BUDGET

    def reference(self, entry: Entry, digest: str) -> Reference | None:
        """Where a text of this cell stands. None where it is not beside the record, or does not fit."""
        if digest not in self._references:
            self._references[digest] = self._add(entry, digest) if self._wanted else None
        return self._references[digest]

    def facts(self, entries: list[Entry]) -> int:
        """Pack what each cell shows when it is opened; return how many cells are in a piece."""
        for at in range(0, len(entries), CHUNK):
            self.pieces[f"c{at // CHUNK}"] = pack([self._cell(entry) for entry in entries[at : at + CHUNK]])
        self._close()
        return CHUNK

    def problems(self) -> Iterable[str]:
        if self.missing:
            yield f"{_texts(self.missing)} not beside the records: keep NAME.texts or NAME.texts.xz beside NAME.jsonl"
        if self.left_out:
            yield f"{_texts(self.left_out)} left out of the page: together they are too large for one file"

    def _cell(self, entry: Entry) -> dict[str, Any]:
        line = entry.line
        found: dict[str, Any] = {"facts": bounded(line["observation"])}
        if line["texts"]:
            found["texts"] = {
                sanitize.name(name): self.reference(entry, digest) for name, digest in line["texts"].items()
            }
        for name in ("micrograph", "reused", "cause", "title"):
            if line.get(name):
                found[name] = bounded(line[name])
        if len(reason := sanitize.text(line["reason"], FACT_TEXT)) > SHORTEST:
            found["reason"] = reason
        if details := [list(one) for one in findings(line)]:
            found["findings"] = details
        return found

    def _add(self, entry: Entry, digest: str) -> Reference | None:
        text = entry.run.text(digest)
        if text is None:
            self.missing += 1
            return None
        if self._room <= 0:
            self.left_out += 1
            return None
        self._piece.append({"text": sanitize.text(text[:TEXT]), "cut": len(text) > TEXT})
        self._size += len(text[:TEXT])
        reference = [self._closed, len(self._piece) - 1]
        if self._size > PIECE:
            self._close()
        return reference

    def _close(self) -> None:
        if self._piece:
            packed = pack(self._piece)
            self._room -= len(packed)
            self.pieces[f"t{self._closed}"] = packed
            self._closed += 1
            self._piece, self._size = [], 0


def _texts(number: int) -> str:
    return f"{counted(number, 'text')} {'is' if number == 1 else 'are'}"


def pack(value: Any) -> str:
    encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    return base64.b64encode(zlib.compress(encoded, 6)).decode()


def json_text(value: Any) -> str:
    """JSON that may stand inside a script element: ASCII, without the characters that end it."""
    encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
