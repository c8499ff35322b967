"""The registry of checks: every ID that a finding can carry, with its title. An ID stands for one thing only.

    @check("FUS001", Stage.FUSION, "fuses into at most as many kernels as the contract allows")
    def at_most(seen: Seen) -> Iterator[tuple[Kind, str]]: ...

A check looks at the facts of one stage. A check that finds nothing to look at (a fact that the backend does not give) says nothing.
What can only be found while a program runs (a comparison with eager, a replay) has no such function: its ID is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.contract import Contract
from conformance.micrograph import Micrograph
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind


@dataclass(frozen=True)
class Seen:
    """What a check may look at."""

    observation: Observation
    micrograph: type[Micrograph]
    backend: str
    target: str

    @property
    def facts(self) -> dict[str, Any]:
        return self.observation.facts

    @property
    def contract(self) -> Contract:
        return self.micrograph.contract


Judge = Callable[[Seen], Iterable[tuple[Kind, str]]]


@dataclass(frozen=True)
class Check:
    """`judge` is None where the finding is made while the program is measured; `stage` is None where any stage can show it."""

    id: str
    stage: Stage | None
    title: str
    judge: Judge | None = None

    def __call__(self, seen: Seen) -> Iterator[Finding]:
        for kind, detail in self.judge(seen) if self.judge else ():
            yield Finding(kind, self.id, detail)


REGISTRY: dict[str, Check] = {}


def _register(entry: Check) -> None:
    known = REGISTRY.get(entry.id)
    if known is not None and (known.title, known.stage) != (entry.title, entry.stage):
        raise ValueError(f"the check ID {entry.id} is taken: {known.title}")
    REGISTRY[entry.id] = entry


def check(id: str, stage: Stage, title: str) -> Callable[[Judge], Judge]:
    """Register a function that judges the facts of a stage."""

    def register(judge: Judge) -> Judge:
        _register(Check(id, stage, title, judge))
        return judge

    return register


def declare(id: str, stage: Stage | None, title: str) -> str:
    """Register an ID for findings that are made while measuring; returns the ID."""
    _register(Check(id, stage, title))
    return id
