"""Text that is safe to show: on a terminal, on a page, in Markdown. A record may hold anything that a compiler ever
printed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

# Escape sequences are removed whole, so that `\x1b[31mred` is read as `red` and not as `[31mred`.
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]"
)
_LINK = re.compile(r"https?://[^\s/?#]+\S*")

NAME = 200
LINE = 2_000


class _Shown(dict[int, int]):
    """For `str.translate`: a character that cannot be shown becomes U+FFFD. That is every control, format (bidi marks,
    zero width), surrogate, private or unassigned character and every line separator but tab and newline."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        shown = character in "\t\n" or character.isprintable() or unicodedata.category(character) == "Zs"
        self[code] = code if shown else 0xFFFD
        return self[code]


_SHOWN = _Shown()


def text(value: Any, limit: int | None = None) -> str:
    """The value as printable text of at most `limit` characters. Tabs and newlines stay."""
    if type(value) is str and value.isprintable() and (limit is None or len(value) <= limit):
        return value
    raw = value if isinstance(value, str) else "" if value is None else _str(value)
    cut = limit is not None and len(raw) > limit
    if limit is not None and cut:
        raw = raw[
            : limit + 64
        ]  # a little more than is shown, so that a sequence at the edge is still recognised as one
    shown = "\n".join(part if part.isprintable() else _clean(part) for part in raw.replace("\r\n", "\n").split("\n"))
    return shorten(shown, limit, cut) if limit is not None else shown


def _clean(part: str) -> str:
    return _ANSI.sub("", part).translate(_SHOWN)


def _str(value: Any) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; an object that contains itself
        return f"a {type(value).__name__} that cannot be shown"


def line(value: Any, limit: int = LINE) -> str:
    """The same in one line."""
    return " ".join(text(value, limit).split())


def name(value: Any) -> str:
    """The same in one line of at most 200 characters."""
    return _name(value) if type(value) is str and len(value) < 2 * NAME else line(value, NAME)


@lru_cache(maxsize=1 << 14)
def _name(value: str) -> str:
    return line(value, NAME)


def shorten(value: str, limit: int, cut: bool = False) -> str:
    return value[: limit - 1] + "…" if cut or len(value) > limit else value


def link(value: Any) -> str:
    """The address, if it is one that a page may link to; else nothing."""
    found = line(value) if value and isinstance(value, str) else ""
    return found if found and _LINK.fullmatch(found) else ""
