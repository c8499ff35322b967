"""What is named inside the stage at fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.triage.ablation import Step


@dataclass
class Culprit:
    """what   a kind of thing: pass, pattern, decomposition, lowering, fusion, guard, cache …
    name   the thing
    why    how it is known
    steps  those without which the subject is right
    also   what comparison says, where that is something else
    """

    what: str
    name: str
    why: str
    ops: list[str] = field(default_factory=list)  # the ops it concerns, for the reducer to begin with
    nodes: int = 0  # of a kernel: how many nodes of the graph are in it
    steps: list[Step] = field(default_factory=list)
    also: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.name}: {self.why}"
