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
    return frozenset(seconds())


def seconds() -> dict[str, float]:
    """What each takes, as recorded of Inductor on the CPU: on a machine on which nothing was measured yet, the order to begin them in."""
    lines = (line.split() for line in paths.core().read_text().splitlines() if not line.startswith(COMMENT))
    return {name: float(cost) for name, cost in lines}


def of(library: Iterable[str]) -> list[str]:
    """Those of the library that are in the core, in their order."""
    mine = names()
    return [name for name in library if name in mine]
