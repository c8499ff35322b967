"""The core of the library: the micrographs that a run takes which names none.

Most micrographs are neighbours: the same pattern with another op, dtype, view or order. All of them take hours on two cores. The core holds
one of each kind: whole families of plain graphs, and of each family that was written after reports what showed something that no other one
shows. `-m '*'` takes all. The list is made from records: `python -m conformance.report.core`.
"""

from __future__ import annotations

from collections.abc import Iterable

from conformance import paths

COMMENT = "#"


def names() -> frozenset[str]:
    """The names in the list."""
    lines = paths.core().read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith(COMMENT))


def of(library: Iterable[str]) -> list[str]:
    """Those of the library that are in the core, in their order."""
    mine = names()
    return [name for name in library if name in mine]
