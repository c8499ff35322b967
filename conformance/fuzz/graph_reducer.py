"""A generated graph made smaller: lines, outputs and inputs are left out while its last call still goes wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from conformance.backends.base import Backend
from conformance.errors import UsageError
from conformance.fuzz.coverage import Tally
from conformance.fuzz.example import Call, Example
from conformance.fuzz.graph import Graph, Line, micrograph_of
from conformance.fuzz.known import Register
from conformance.fuzz.rejection import Rejected
from conformance.fuzz.search import Suspect
from conformance.fuzz.served import Served, runner_for
from conformance.fuzz.strategies import plain
from conformance.fuzz.watchdog import Hung, limited
from conformance.reduce import descend
from conformance.target import Target
from conformance.verdict import Kind


def smaller(
    suspect: Suspect,
    backend: Backend,
    target: Target,
    seconds: float = 150.0,
    patience: float = 0.0,
    register: Register | None = None,
) -> Suspect:
    """Leave out lines, outputs and inputs for as long as the last call still goes wrong in the same way."""
    until = time.monotonic() + seconds

    def candidates(example: Example) -> Iterator[Example]:
        if example.graph is not None:
            for graph, calls in _trials(example.graph, example.calls):
                yield _of_graph(replace(example, calls=calls), graph)

    def holds(example: Example) -> bool:
        return fails(example, suspect, backend, target, patience, register)

    return Suspect(descend(suspect.example, candidates, holds, lambda: time.monotonic() > until), suspect.differences)


def _of_graph(example: Example, graph: Graph) -> Example:
    """The same calls of another graph, without the dims that it does not have."""
    micrograph = micrograph_of(graph)
    dims = micrograph.dims
    calls = tuple(replace(call, dims={d: n for d, n in call.dims.items() if d in dims}) for call in example.calls)
    dynamic, unbacked = (tuple(d for d in marked if d in dims) for marked in (example.dynamic, example.unbacked))
    made = replace(example, calls=calls, graph=graph, micrograph=micrograph.name())
    return replace(made, dynamic=dynamic, unbacked=unbacked)


def fails(
    example: Example,
    suspect: Suspect,
    backend: Backend,
    target: Target,
    patience: float = 0.0,
    register: Register | None = None,
) -> bool:
    """Does its last call go wrong as the suspect's does, and not for a reason that is known?"""
    runner = runner_for(backend, target, example.base(), Tally(), example.graph, register)
    try:
        with limited(patience):
            if not isinstance(runner, Served):
                found = runner.run(replace(plain(runner.micrograph), dynamic=False), example.calls[-1])
                return bool(found) and found[0].kind is suspect.kind and not runner.known(example.calls[-1], found)
            end = runner.replay(list(example.calls), example.dynamic, example.unbacked)
            same = end == len(example.calls) - 1 and runner.last[0].kind is suspect.kind
            return same and not runner.known(example.calls[-1], runner.last)
    except (Rejected, UsageError):
        return False
    except Hung:
        return suspect.kind is Kind.TIMEOUT
    finally:
        runner.close()


def _trials(graph: Graph, calls: tuple[Call, ...]) -> Iterator[tuple[Graph, tuple[Call, ...]]]:
    for output in graph.outputs if len(graph.outputs) > 1 else ():  # most often one is enough
        yield _tidy(replace(graph, outputs=(output,)), calls)
    for output in graph.outputs:
        if len(graph.outputs) > 2:
            yield _tidy(replace(graph, outputs=tuple(o for o in graph.outputs if o != output)), calls)
    for line in reversed(graph.lines):
        rest = replace(graph, lines=tuple(other for other in graph.lines if other is not line))
        if not line.name:
            yield _tidy(rest, calls)
            continue
        inputs = [given.name for given in graph.inputs]
        for name in [*inputs, *(other.name for other in graph.lines[: graph.lines.index(line)] if other.name)]:
            if graph.type_of(name) == (line.shape, line.dtype):
                yield _tidy(_renamed(rest, line.name, name), calls)
        if gone := _without(graph, line):
            yield _tidy(gone, calls)


def _renamed(graph: Graph, old: str, new: str) -> Graph:
    def swap(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    outputs = tuple(dict.fromkeys(swap(graph.outputs)))
    return replace(graph, lines=tuple(replace(line, args=swap(line.args)) for line in graph.lines), outputs=outputs)


def _without(graph: Graph, gone: Line) -> Graph | None:
    """Without a line and all that needs it."""
    names, lines = {gone.name}, []
    for line in graph.lines:
        if line is gone or names & {*line.args}:
            names |= {line.name} - {""}
        else:
            lines.append(line)
    outputs = tuple(o for o in graph.outputs if o not in names)
    return Graph(graph.inputs, tuple(lines), outputs) if outputs and lines else None


def _tidy(graph: Graph, calls: tuple[Call, ...]) -> tuple[Graph, tuple[Call, ...]]:
    """Without lines that nothing uses, and inputs that no line does."""
    lines = list(graph.lines)
    while True:
        used = {*graph.outputs} | {arg for line in lines for arg in line.args}
        kept = [line for line in lines if not line.name or line.name in used]
        if len(kept) == len(lines):
            break
        lines = kept
    text = " ".join(line.text() for line in lines)
    names = [given.name for given in graph.inputs]
    keep = [i for i, name in enumerate(names) if name in graph.outputs or re.search(rf"\b{name}\b", text)] or [0]
    if any(g.shares is not None for call in calls for g in call.given):
        keep = list(range(len(graph.inputs)))  # an input may be there for another's sake
    made = Graph(tuple(graph.inputs[i] for i in keep), tuple(lines), graph.outputs)
    return made, tuple(_fewer(call, keep) for call in calls)


def _fewer(call: Call, keep: list[int]) -> Call:
    return replace(call, given=tuple(call.given[i] for i in keep))
