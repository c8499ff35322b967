"""Generated graphs: eager takes them, they cover what compilers stumble over, and what fails in one becomes small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance import oracle
from conformance.fuzz import graph_gen, graph_reducer, op_templates
from conformance.fuzz.coverage import Tally
from conformance.fuzz.graph import micrograph_of
from conformance.fuzz.search import Profile, search
from conformance.fuzz.served import runner_for
from conformance.target import CPU
from tests.fuzz.faulty_backends import LyingBackend

FEW = Profile("test", forms=3, examples=60, static=0, minutes=2.0)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))


def test_eager_takes_what_is_made_up() -> None:
    for number in range(40):
        micrograph = micrograph_of(graph_gen.graph(number))
        module = micrograph.build()
        outcome = oracle.run(module, micrograph.example(0), module)
        assert outcome.error is None, (graph_gen.graph(number).source(), outcome.error)


def test_the_same_number_is_the_same_graph() -> None:
    assert graph_gen.graph(7) == graph_gen.graph(7) != graph_gen.graph(8)


def test_every_piece_is_used() -> None:
    """A piece that eager refuses for every value it is offered is a line of text, and no more."""
    used = Counter(line.op for number in range(1500) for line in graph_gen.graph(number).lines)
    tables = [
        op_templates.SMOOTH,
        op_templates.KEEPING,
        op_templates.STEPS,
        op_templates.INTEGER,
        op_templates.BOOLEAN,
        op_templates.BINARY_SMOOTH,
        op_templates.BINARY_KEEPING,
    ]
    tables += [
        op_templates.BINARY_STEPS,
        op_templates.BINARY_INTEGER,
        op_templates.BINARY_BOOLEAN,
        op_templates.MIXED,
        op_templates.WRITES,
        op_templates.WRITES_SMOOTH,
    ]
    never = [code for table in tables for code in table if not used[code]]
    assert not never


def test_a_graph_that_fails_becomes_one_line() -> None:
    backend = LyingBackend("odd sizes")
    for number in range(10):
        graph = graph_gen.graph(number)
        runner = runner_for(backend, CPU, micrograph_of(graph), Tally(), graph)
        suspect = search(runner, FEW, number)
        runner.close()
        if suspect is not None:
            small = graph_reducer.smaller(suspect, backend, CPU)
            assert small.example.source.count("\n        v") <= 1, small.example.source
            assert small.example.graph and graph_gen.signature(small.example.graph) <= graph_gen.signature(graph)
            return
    raise AssertionError("not found")
