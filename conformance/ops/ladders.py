"""The rungs that each compiler has in a sweep of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.errors import UsageError
from conformance.ops.rung import Compiled, Decomposed, Rung


@dataclass(frozen=True)
class Ladder:
    """rungs, in order; check: what a finding of an earlier rung is confirmed with."""

    target: str
    rungs: tuple[Rung, ...]
    check: Rung | None


def inductor(target: str | None) -> Ladder:
    if target not in (None, "cpu"):
        raise UsageError(f"operators are swept through inductor for cpu, not for {target}")
    whole = Compiled()
    return Ladder("cpu", (Decomposed(), whole), whole)


LADDERS: dict[str, Callable[[str | None], Ladder]] = {"inductor": inductor}
