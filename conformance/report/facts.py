"""What the facts of an observation mean to a reader: which are compared, which way is worse, which are drawn over versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.report import sanitize

# Differ from run to run on the same compiler, so a difference says nothing.
VOLATILE_ENDS = ("seconds", "_ms", "_us", "_time", "bytes", "_path", "address", "pid", "timestamp")
# Text that changes with every version of a compiler (variable names, comments): a difference is weak evidence.
WEAK_ENDS = ("digest", "digests", "hash", "key", "keys")

# More of these is worse (+1), fewer is worse (-1), by the last word of the fact's name; all others have no direction.
WORSE = {
    "kernels": +1,
    "breaks": +1,
    "graph_breaks": +1,
    "graphs": +1,
    "recompiles": +1,
    "spills": +1,
    "engines": +1,
    "fallbacks": +1,
    "left": +1,
    "misses": +1,
    "matches": -1,
    "hits": -1,
}

# Drawn as small plots over versions: name → stage, fact.
PLOTS = {"kernels": ("fusion", "kernels"), "matches": ("postgrad", "matches")}

_DEPTH = 6


def volatile(path: str) -> bool:
    return any(part.endswith(VOLATILE_ENDS) for part in path.split("."))


def weak(path: str) -> bool:
    return any(part.endswith(WEAK_ENDS) for part in path.split("."))


def direction(path: str) -> int:
    """By the first word that has one: `matches.addmm` is a number of matches."""
    return next((WORSE[part] for part in path.split(".") if part in WORSE), 0)


def number(value: Any) -> float | None:
    """A fact as one number: itself, the sum of a table of counts, the length of a list."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        return float(value) if value == value and abs(value) < 1e15 else None
    if isinstance(value, Mapping):
        counts = [number(one) for one in value.values()]
        return sum(count for count in counts if count is not None)
    if isinstance(value, list):
        return float(len(value))
    return None


def flatten(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """`{"matches": {"addmm": 1}}` → `("matches.addmm", 1)`. Lists are compared whole."""
    if isinstance(value, Mapping) and depth < _DEPTH:
        if not value and path:
            yield path, {}
        for key, inner in value.items():
            yield from flatten(inner, f"{path}.{key}" if path else str(key), depth + 1)
    else:
        yield path, value


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(path, old, new) of every fact that differs and is not volatile; None stands for a fact that is not there."""
    if old == new:
        return []
    before, after = dict(flatten(old)), dict(flatten(new))
    found = []
    for path in dict.fromkeys((*before, *after)):
        a, b = before.get(path), after.get(path)
        if a != b and not volatile(path) and not _both_empty(a, b):
            found.append((path, a, b))
    return found


def _both_empty(a: Any, b: Any) -> bool:
    """A table without entries and an absent table say the same: a count of zero is often not written."""
    return not a and not b and not isinstance(a, bool) and not isinstance(b, bool) and a != 0 and b != 0


def brief(value: Any, limit: int = 60) -> str:
    """A fact in a few characters, for a table."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return sanitize.line(", ".join(brief(one, 30) for one in value[:8]) + (", …" if len(value) > 8 else ""), limit) or "empty"
    return sanitize.line(value, limit)
