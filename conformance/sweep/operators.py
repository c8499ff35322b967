"""Operators as work of a sweep: a unit is an operator in a dtype, `backend/target/ops.NAME:DTYPE`, and gives a line a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.errors import UsageError
from conformance.ops.words import operator_and_dtype
from conformance.sweep.spec import Work

Message = dict[str, Any]


class Operators:
    """The lines are those of `conformance ops`, and what they are written into is a record."""

    key: str | None = None

    def __init__(self, work: Work) -> None:
        from conformance.ops.commands import prepare, sweep_of

        if len(work.backends) > 1 or len(work.targets) > 1:
            raise UsageError("a sweep of operators takes one backend and one target an environment: -b inductor -t cpu")
        backend, target = (*work.backends, "inductor")[0], (*work.targets, None)[0]
        self.sweep = sweep_of(backend, target, work.micrographs, work.dtypes, work.forms, work.samples, work.stages)
        self.patterns: Sequence[str] = [f"{rung.stage.value}/{{}}" for rung in self.sweep.rungs]
        self.expected = prepare(self.sweep, work.expectations)

    def header(self, argv: list[str]) -> dict[str, Any]:
        from conformance import environment

        return environment.header(argv, self.expected.digest)

    def units(self) -> list[str]:
        return list(dict.fromkeys(cell.partition("/")[2] for cell in self.sweep.cells()))

    def run(self, units: dict[str, list[str]]) -> Iterator[Message]:
        wanted = {name for names in units.values() for name in names}
        named = {found[0] for unit in units if (found := operator_and_dtype(unit.split("/", 2)[2])) is not None}
        sweep = replace(self.sweep, operators=tuple(one for one in self.sweep.operators if one.name in named))
        done = [cell for cell in sweep.cells() if cell not in wanted]
        yield {"begun": next(iter(units))}
        for results in sweep.run(1, done):
            yield from (_message(line) for line in results.lines(self.expected) if line["cell"] in wanted)

    def lost(self, unit: str, names: list[str], reason: str) -> Iterator[Message]:
        from conformance.ops.cells import dead

        yield from (_message(dead(name, reason, self.expected)) for name in names)


def _message(line: dict[str, Any]) -> Message:
    return {"unit": line["cell"].partition("/")[2], "key": line["cell"], "line": line, "texts": {}}
