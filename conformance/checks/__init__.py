"""Checks: each looks at one stage's observation and the contract, and says what is wrong. One file a check.

    @check("FUS001", Stage.FUSION, "fuses into at most as many kernels as the contract allows")
    def at_most(seen: Seen) -> Iterator[tuple[Kind, str]]: ...

A check that finds nothing to look at (a fact that the backend does not give) says nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.micrograph import Contract, Micrograph
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
    id: str
    stage: Stage
    title: str
    judge: Judge

    def __call__(self, seen: Seen) -> Iterator[Finding]:
        for kind, detail in self.judge(seen):
            yield Finding(kind, self.id, detail)


_checks: dict[str, Check] = {}


def check(id: str, stage: Stage, title: str) -> Callable[[Judge], Judge]:
    def register(judge: Judge) -> Judge:
        assert id not in _checks or _checks[id].judge.__module__ == judge.__module__, f"two checks are named {id}"
        _checks[id] = Check(id, stage, title, judge)
        return judge

    return register


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def all_checks() -> list[Check]:
    _load()
    return [_checks[id] for id in sorted(_checks)]


def findings(stage: Stage, seen: Seen) -> list[Finding]:
    return [finding for check in all_checks() if check.stage is stage for finding in check(seen)]
