"""What the facts of an observation mean to a reader: which are compared, which way is worse, which are drawn over
versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conformance import sanitize

# The classes of a difference between two records, the costliest first, and which of them an improvement cancels.
WRONG, FIXED, LOST, MORE, FEWER, CODE, BOOKKEEPING = "wrong", "fixed", "lost", "more", "fewer", "code", "bookkeeping"
CLASSES = (WRONG, FIXED, LOST, MORE, FEWER, CODE, BOOKKEEPING)

# A fact by its name, or by the part of its path that is named here first: what more of it means, and what fewer.
# `matches.addmm` is a number of matches; `again.fx_hit` one of cache hits.
DIRECTIONS = {
    **dict.fromkeys(("matches", "rewritten", "rewrites"), (FEWER, LOST)),
    "vector_kernels": (CODE, LOST),  # more of them: there may be more loops
    **dict.fromkeys(("fallbacks", "left", "ops_in_torch"), (LOST, FEWER)),
    **dict.fromkeys(("graphs", "breaks", "graph_breaks", "recompiles", "engines"), (MORE, FEWER)),
    **dict.fromkeys(("kernels", "launches", "spills", "temporaries"), (MORE, FEWER)),
    **dict.fromkeys(("bytes_moved", "peak_of_temporaries"), (MORE, FEWER)),
    **dict.fromkeys(("misses", "fx_miss", "aot_miss", "engine_miss"), (MORE, FEWER)),
    **dict.fromkeys(("hits", "fx_hit", "aot_hit", "engine_hit"), (FEWER, MORE)),
}
# Counters of the pattern matcher as a whole: they change with every rewrite, whichever it was.
UNDIRECTED = frozenset({"pattern_matcher_count", "pattern_matcher_nodes"})
# Names and texts that change without a change of what was computed. They count only where nothing else of the two
# environments differs, so that nobody but the compiler can have changed them.
BOOKKEEPING_NAMES = frozenset(
    {"guards", "break_reasons", "without_metadata", "isa", "timing_cache", "compute_capability", "passes", "differs"}
)
BOOKKEEPING_ENDS = ("digest", "digests", "hash", "key", "keys", "metadata")
IDLE = ("skipped", "disabled")  # states of a pass that did nothing; which of the two it says is a matter of its log
# Different in every run of the same compiler, so a difference says nothing.
VOLATILE_ENDS = ("seconds", "_ms", "_us", "_time", "plan_bytes", "engine_bytes", "_path", "address", "pid", "timestamp")
# Dynamo guards Python's builtins by identity once for each name that they have in the process: only "some" is
# comparable.
ONCE = frozenset({"ID_MATCH"})

# Drawn as small plots over versions: name → stage, fact.
PLOTS = {"kernels": ("fusion", "kernels"), "matches": ("postgrad", "matches")}

_DEPTH = 6


class Fact(NamedTuple):
    """A fact that differs. rank: its class."""

    path: tuple[str, ...]
    old: Any
    new: Any
    rank: str

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def change(self) -> str:
        """`+` it appeared, `-` it went away, `>` more, `<` fewer, `~` other."""
        before, after = number(self.old), number(self.new)
        if before is None or after is None or before == after:
            return "~"
        if not before or not after:
            return "-" if before else "+"
        return ">" if after > before else "<"


def differences(old: Mapping[str, Any], new: Mapping[str, Any], exact: bool = False) -> list[Fact]:
    """The facts that both sides recorded and that differ. exact: the environments are the same, so that names and texts
    count too."""
    if old == new:
        return []
    launches = _launches(old), _launches(new)
    shifted = None not in launches and old["library"] != new["library"]
    if shifted:
        old, new = {**old, "launches": launches[0]}, {**new, "launches": launches[1]}
    found = [Fact(path, a, b, _rank(path, a, b, exact)) for path, a, b in _walk(old, new, ()) if not _volatile(path)]
    return [fact._replace(rank=CODE) if shifted and fact.path == ("kernels",) else fact for fact in found]


def _launches(facts: Mapping[str, Any]) -> int | None:
    """A kernel that becomes a library call is not a kernel fewer: what costs is how often something is launched."""
    kernels, library = facts.get("kernels"), facts.get("library")
    return kernels + len(library) if isinstance(kernels, int) and isinstance(library, list) else None


def _walk(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """(path, old, new) of the leaves that differ. In a table of counts an absent entry is zero; anywhere else it was
    not recorded, and that is no difference."""
    old, new = _table(old, path), _table(new, path)
    if isinstance(old, Mapping) and isinstance(new, Mapping) and len(path) < _DEPTH:
        counts = bool(path) and _counts(old) and _counts(new)
        for key in dict.fromkeys((*old, *new)):
            inner = (*path, str(key))
            if key in old and key in new:
                yield from _walk(old[key], new[key], inner)
            elif counts and (old.get(key) or new.get(key)):
                yield inner, old.get(key, 0), new.get(key, 0)
    elif old != new and not (path and path[-1] in ONCE and old and new):
        yield path, old, new


def _table(value: Any, path: tuple[str, ...]) -> Any:
    """A list of names as a table of counts: their order is no fact. Named kernels as their number and the sums of what
    each has: names of kernels change with every version."""
    if isinstance(value, list) and all(isinstance(one, (str, int, float)) for one in value):
        return Counter(map(str, value))
    if (
        path
        and path[-1] == "kernels"
        and isinstance(value, Mapping)
        and value
        and all(isinstance(one, dict) for one in value.values())
    ):
        sums: Counter[str] = Counter()
        for one in value.values():
            sums.update({str(key): inner for key, inner in one.items() if _number(inner)})
        return {"number": len(value), **sums}
    return value


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_number, value.values()))


def _rank(path: tuple[str, ...], old: Any, new: Any, exact: bool) -> str:
    if path[-1] == "state" and old in IDLE and new in IDLE:
        return BOOKKEEPING
    named = path[-1] == path[0] if path[0] == "passes" else path[0] in BOOKKEEPING_NAMES  # how many passes there are
    if named or any(part.endswith(BOOKKEEPING_ENDS) for part in path):
        return CODE if exact else BOOKKEEPING
    known = next((DIRECTIONS[part] for part in path if part in DIRECTIONS), None)
    if path[0] == "kernels" and len(path) > 1:
        known = DIRECTIONS.get("kernels" if path[1] == "number" else path[-1])
    before, after = number(old), number(new)
    if known is None or before is None or after is None or before == after or UNDIRECTED.intersection(path):
        return CODE
    if path == ("graphs",) and not (before and after):
        return CODE  # nothing was captured at all: an exception came before, as it should, or did not
    return known[0] if after > before else known[1]


def _volatile(path: tuple[str, ...]) -> bool:
    return any(part.endswith(VOLATILE_ENDS) for part in path)


def number(value: Any) -> float | None:
    """A fact as one number: itself, the sum of a table of counts, the length of a list."""
    if isinstance(value, (int, float)):
        return float(value) if value == value and abs(value) < 1e15 else None
    if isinstance(value, Mapping):
        counts = [number(one) for one in value.values()]
        return sum(count for count in counts if count is not None)
    if isinstance(value, list):
        return float(len(value))
    return None


def brief(value: Any, limit: int = 60) -> str:
    """A fact in a few characters, for a table."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return (
            sanitize.line(", ".join(brief(one, 30) for one in value[:8]) + (", …" if len(value) > 8 else ""), limit)
            or "empty"
        )
    return sanitize.line(value, limit)
