"""Text from a record, made safe to show: a record may hold anything that a compiler, a name or an error ever printed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# Escape sequences are removed whole, so that `\x1b[31mred` is read as `red` and not as `[31mred`.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")
# Controls, lone surrogates, non-characters, and the marks that reorder text (a name that reads backwards is a disguise).
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")

NAME = 200
LINE = 2_000


def text(value: Any, limit: int | None = None) -> str:
    """Printable text of any value: no escape sequences, no controls but tab and newline, no lone surrogates."""
    if type(value) is str and value.isprintable() and (limit is None or len(value) <= limit):
        return value  # nearly all texts: no controls, no marks, no lone surrogates
    found = value if isinstance(value, str) else "" if value is None else str(value)
    cut = limit is not None and len(found) > limit
    if limit is not None and cut:
        # A little more than is shown, so that a sequence at the edge is still recognised as one.
        found = found[: limit + 64]
    if _UNSEEN.search(found):
        found = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", found.replace("\r\n", "\n")))
    return shorten(found, limit, cut) if limit is not None else found


def line(value: Any, limit: int = LINE) -> str:
    """The same in one line."""
    return " ".join(text(value, limit).split())


def name(value: Any) -> str:
    return _name(value) if type(value) is str and len(value) < 2 * NAME else line(value, NAME)


@lru_cache(maxsize=1 << 14)
def _name(value: str) -> str:
    return line(value, NAME)


def shorten(value: str, limit: int, cut: bool = False) -> str:
    return value[: limit - 1] + "…" if cut or len(value) > limit else value


def link(value: Any) -> str:
    """The address, if it is one that a page may link to; else nothing."""
    found = line(value) if isinstance(value, str) else ""
    return found if re.match(r"https?://[^\s/?#]+", found) else ""
