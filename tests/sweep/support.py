"""Sweeps of a kind of work that costs nothing, and a cluster that exists only in this process."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.revision import revision
from conformance.stage import STAGES
from conformance.sweep.columns import Place
from conformance.sweep.executor import Event, Free, Gone, Question, Refused, Said
from conformance.sweep.local import LocalExecutor
from conformance.sweep.scheduler import Scheduler
from conformance.sweep.spec import Environment, Sweep, Work

KIND = "tests.sweep.null_kind:Null"


def null(name: str, *words: str, torch: str = "2.15.0", **rest: Any) -> Environment:
    """An environment in which units of the null kind are run (tests/sweep/null_kind.py says what the words mean)."""
    work = Work(kind=KIND, micrographs=words, targets=("cpu",))
    made = {} if "packages" in rest else {"interpreter": sys.executable}
    return Environment(name=name, work=work, variables={"NULL_TORCH": torch}, **made, **rest)


def run_here(
    environments: Sequence[Environment], folder: Path, resume: bool = False, workers: int = 1
) -> tuple[Scheduler, list[str]]:
    """A sweep on this machine, with real workers. Returns the scheduler and what it said."""
    said: list[str] = []
    executor = LocalExecutor(environments, workers)
    sweep = Sweep(environments=tuple(environments)).checked()
    scheduler = Scheduler(
        sweep, executor, folder, lambda unit: 1.0, ["conformance", "sweep"], resume=resume, say=said.append
    )
    try:
        scheduler.run()
    finally:
        executor.close()
    return scheduler, said


def verdicts(path: Path) -> dict[str, str]:
    """Of every line of a record, none of which may come twice."""
    lines = [json.loads(line) for line in path.read_text().splitlines()][1:]
    found = {line["cell"]: line["verdict"] for line in lines}
    assert len(found) == len(lines), "a cell came twice"
    return found


class Simulated:
    """Nodes with one slot each. Every poll lets some of them say one more thing. `poison`: units that end their worker; `deadly`: units that
    take their whole node with them; `mortal`: the chance, at every poll, that a node dies. Another node comes for each that died."""

    def __init__(
        self,
        seed: int,
        nodes: int,
        units: int,
        poison: Sequence[int] = (),
        deadly: Sequence[int] = (),
        mortal: float = 0.0,
    ) -> None:
        self.random, self.units, self.mortal = random.Random(seed), units, mortal
        self.poison, self.deadly = set(poison), set(deadly)
        self.streams: dict[str, Iterator[dict[str, Any]]] = {}
        self.count, self.deaths = 0, 0
        self.fresh = [self._node() for _ in range(nodes)]
        self.headers: dict[str, dict[str, Any]] = {}  # other headers, by slot
        self.unmakeable: list[Event] = []

    def _node(self) -> str:
        self.count += 1
        return f"slot {self.count}"

    def _free(self, slot: str) -> Free:
        return Free(slot, f"node of {slot}", Place("x86_64"))

    def poll(self, timeout: float) -> list[Event]:
        found: list[Event] = [*self.unmakeable, *(self._free(slot) for slot in self.fresh)]
        self.fresh, self.unmakeable = [], []
        for slot in [slot for slot in self.streams if self.random.random() < 0.7]:
            message = next(self.streams[slot], None)
            if message is None:
                del self.streams[slot]
                found.append(self._free(slot))
            elif "node" in message or self.random.random() < self.mortal:
                found += self._kill(slot)
            else:
                found.append(Said(slot, [message]))
        return found

    def _kill(self, slot: str) -> list[Event]:
        self.streams.pop(slot, None)
        self.deaths += 1
        self.fresh.append(self._node())
        return [Gone(slot, "the node died", node_died=True)]

    def ask(self, slot: str, question: Question) -> None:
        self.streams[slot] = self._answers(slot, question.message)

    def _answers(self, slot: str, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "list" in message:
            units = [f"null/cpu/unit.{number:06}" for number in range(self.units)] if message["list"] else []
            yield {
                "hello": self.headers.get(slot, header()),
                "patterns": [f"{stage}/{{}}" for stage in STAGES],
                "key": None,
                "units": units,
            }
            return
        if "lost" in message:
            yield from _lines(message["lost"], message["names"], {"verdict": "error", "reason": message["reason"]})
            return
        for unit, names in list(message["run"].items()):
            number = int(unit.rpartition(".")[2])
            yield {"begun": unit}
            if number in self.deadly:
                yield {"node": "dies"}
            if number in self.poison:
                yield {"died": "the worker was ended by SIGSEGV"}
                return
            yield from _lines(unit, list(names), {"verdict": "pass", "reason": ""})

    def ready(self, environment: str) -> bool:
        return True

    def slots(self) -> int:
        return 1

    def alive(self) -> bool:
        return True

    def close(self) -> None: ...


def header(**changed: Any) -> dict[str, Any]:
    env = {"torch": "2.15.0", "python": "3.11.1", "machine": "x86_64", "backends": {"null": {"null": "1"}}}
    return {"suite": revision(), "producers": {}, "env": env, "started": "2026-01-01T00:00:00", **changed}


def _lines(unit: str, names: Sequence[str], said: dict[str, str]) -> Iterator[dict[str, Any]]:
    for name in names:
        yield {"unit": unit, "key": name, "line": {"cell": name, **said, "seconds": 0.001}, "texts": {}}


def simulate(executor: Simulated, folder: Path, resume: bool = False) -> tuple[Scheduler, list[str]]:
    said: list[str] = []
    sweep = Sweep(environments=(null("torch-2.15", str(executor.units)),))
    scheduler = Scheduler(sweep, executor, folder, lambda unit: 1.0, ["conformance"], resume=resume, say=said.append)
    scheduler.run()
    return scheduler, said


__all__ = ["KIND", "Refused", "Simulated", "header", "null", "run_here", "simulate", "verdicts"]
