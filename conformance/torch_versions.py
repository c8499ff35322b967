"""Versions of torch as a user writes them: `2.11..2.15`, `2.14.1`, `2.14`, or several with commas."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from conformance.errors import UsageError

RANGE = re.compile(r"(\d+)\.(\d+)\.\.(?:(\d+)\.)?(\d+)")
FORMS = "2.14.1, 2.14 or 2.11..2.15"


def versions(words: str, forms: str = FORMS) -> list[str]:
    """The versions that the words name, each once, in the order in which they stand: a range is each of its minor versions. `forms` is what
    the complaint about any other word tells the user to write."""
    return list(dict.fromkeys(version for word in words.split(",") for version in _word(word.strip(), forms)))


def _word(word: str, forms: str) -> list[str]:
    if match := RANGE.fullmatch(word):
        major, low, last_major, high = match.groups()
        if last_major not in (None, major) or int(low) > int(high):
            raise UsageError(f"{word!r} is no range of torch: write it as 2.11..2.15, the older version first")
        return [f"{major}.{minor}" for minor in range(int(low), int(high) + 1)]
    try:
        Version(word)
    except InvalidVersion:
        raise UsageError(f"{word!r} is no version of torch: write {forms}") from None
    return [word]


def requirement(version: str) -> str:
    """What uv is told to install: that very version, or the newest patch release where the version has no patch number."""
    exact = len(Version(version).release) >= 3
    return f"torch=={version}" if exact else f"torch~={version}.0"
