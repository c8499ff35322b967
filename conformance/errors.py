"""A user's mistakes, and exceptions, as one line of text."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path


class UsageError(Exception):
    """A mistake that the user can mend: shown as one line, exit code 2, never with a traceback."""


class CannotRun(Exception):
    """What was compiled cannot be run here (no device, an interpreter that does not know an op): the runtime stage is `unavailable` for
    this reason, and nothing is wrong with the compile."""


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """`unknown backend 'inducter': did you mean inductor? known: …`"""
    names = sorted(known)
    near = difflib.get_close_matches(name[:200], names[:20_000], n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return UsageError(f"unknown {what} {name!r}: {hint}known: {few(names, 12) or 'none'}")


def few(names: Iterable[str], limit: int) -> str:
    """`add, sub, mul and 12 more`"""
    listed = list(names)
    return ", ".join(listed[:limit]) + (f" and {len(listed) - limit} more" if len(listed) > limit else "")


def encodable(text: str) -> str:
    """The text with every lone surrogate written as `\\udc80`, so that it can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """The text with control characters and what cannot be encoded written as escapes, so that nothing of it is lost."""
    kept = (
        c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )
    return encodable("".join(kept))


def first_line(error: BaseException, limit: int = 300) -> str:
    """The exception's type and the first line of its text, short enough for a table. It can always be encoded."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    line = f"{type(error).__name__}: {text}" if text else f"{type(error).__name__}{_place(error)}"
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _text(error: BaseException) -> str:
    """What the exception says; its arguments where its own `__str__` fails."""
    try:
        return printable(str(error))
    except Exception as broken:
        return printable(f"{error.args!a} (its text cannot be shown: {type(broken).__name__})")


def _place(error: BaseException) -> str:
    """Where it was raised: all that is known of an error without text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}: {frames[-1].line}" if frames else ""


def program_line(stack: str) -> str:
    """The innermost line of the program in a stack trace: `file.py:14: return x * 9`."""
    lines = [line.strip() for line in stack.splitlines() if line.strip(" \t~^")]
    at = next((number for number in reversed(range(len(lines))) if lines[number].startswith("File ")), None)
    if at is None:
        return ""
    match = re.match(r'File "([^"]+)", line (\d+)', lines[at])
    code = lines[at + 1] if at + 1 < len(lines) else ""
    return f"{Path(match[1]).name}:{match[2]}: {code}" if match else code


class NotInEager(Exception):
    """Eager itself does not run a micrograph on this target or version: it says nothing about a compiler there."""


def innermost_first(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it came from, as Dynamo and Python chain them."""
    chain: list[BaseException] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        chain.append(current)
        current = getattr(current, "inner_exception", None) or current.__cause__ or current.__context__
    yield from reversed(chain)
