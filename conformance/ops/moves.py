"""What moved between two versions of a compiler, operator by operator: what broke, what was mended, what falls back now. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.ops.words import BAD, BLOCKED, FALLBACK, NOTHING, Entry, dtype_order

BROKE, MENDED, OTHERWISE, FALLS_BACK, NO_FALLBACK, SAME_RESULT = (
    "broke",
    "mended",
    "wrong otherwise",
    "falls back now",
    "falls back no more",
    "compiled in another way",
)
KINDS = {
    BROKE: "right in the older version, wrong, refused or dead in the newer one",
    MENDED: "wrong, refused or dead in the older version, right in the newer one",
    OTHERWISE: "in both versions, in another way or in other forms",
    FALLS_BACK: "generated code before, a kernel of ATen now; right in both",
    NO_FALLBACK: "a kernel of ATen before, generated code now; right in both",
    SAME_RESULT: "right in both versions",
}


@dataclass(frozen=True)
class Move:
    """An operator whose words differ between two versions, in dtypes that moved alike. `said` is the first finding of the side that is
    wrong, the newer one if both are."""

    kind: str
    operator: str
    before: str
    after: str
    dtypes: tuple[str, ...]
    said: str


def kind_of(old: Entry, new: Entry) -> str | None:
    """None where nothing moved, or where one side has no sample to compare."""
    if {old.word, new.word} & {NOTHING, BLOCKED} or (old.word, old.forms) == (new.word, new.forms):
        return None
    if new.word in BAD:
        return OTHERWISE if old.word in BAD else BROKE
    if old.word in BAD:
        return MENDED
    if FALLBACK in (old.word, new.word):
        return FALLS_BACK if new.word == FALLBACK else NO_FALLBACK
    return SAME_RESULT


def moves(older: Mapping[tuple[str, str], Entry], newer: Mapping[tuple[str, str], Entry]) -> list[Move]:
    """What moved between two versions, each by operator and dtype: one line for the dtypes of an operator that moved alike, what costs
    most first."""
    found: dict[tuple[str, str, str, str], list[tuple[str, Entry, Entry]]] = {}
    for (operator, dtype), old in older.items():
        new = newer.get((operator, dtype))
        if new is not None and (kind := kind_of(old, new)) is not None:
            key = (kind, operator, _told(old), _told(new))
            found.setdefault(key, []).append((dtype, old, new))
    order = list(KINDS)
    made = []
    for (kind, operator, before, after), alike in found.items():
        alike.sort(key=lambda one: dtype_order(one[0]))
        _, old, new = alike[0]
        said = next(iter([*new.findings, *old.findings] if kind in (BROKE, MENDED, OTHERWISE) else []), "")
        made.append(Move(kind, operator, before, after, tuple(dtype for dtype, _, _ in alike), said))
    return sorted(made, key=lambda move: (order.index(move.kind), move.operator, move.before, move.after))


def _told(entry: Entry) -> str:
    return f"{entry.word} ({', '.join(entry.forms)})" if entry.forms else entry.word
