"""Generated graphs: eager takes them, they cover what compilers stumble over, and what fails in one becomes small."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance import oracle
from conformance.fuzz import pieces, programs
from conformance.fuzz.example import generated
from conformance.fuzz.runner import Tally, runner_for
from conformance.fuzz.search import Profile, search
from conformance.target import CPU
from tests.fuzz.lying import LyingBackend

FEW = Profile("test", forms=3, examples=60, static=0, minutes=2.0)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path))


def test_eager_takes_what_is_made_up() -> None:
    for number in range(40):
        micrograph = generated(programs.source(number))
        module = micrograph.build()
        outcome = oracle.run(module, micrograph.example(0), module)
        assert outcome.error is None, (programs.source(number), outcome.error)


def test_the_same_number_is_the_same_graph() -> None:
    assert programs.program(7) == programs.program(7) != programs.program(8)


def test_every_piece_is_used() -> None:
    """A piece that eager refuses for every value it is offered is a line of text, and no more."""
    used = Counter(line.code for number in range(1500) for line in programs.program(number).lines)
    tables = [pieces.SMOOTH, pieces.KEEPING, pieces.STEPS, pieces.INTEGER, pieces.BOOLEAN, pieces.BINARY_SMOOTH, pieces.BINARY_KEEPING]
    tables += [pieces.BINARY_STEPS, pieces.BINARY_INTEGER, pieces.BINARY_BOOLEAN, pieces.MIXED, pieces.WRITES, pieces.WRITES_SMOOTH]
    never = [code for table in tables for code in table if not used[code]]
    assert not never


def test_a_graph_that_fails_becomes_one_line() -> None:
    backend = LyingBackend("odd sizes")
    for number in range(10):
        source = programs.source(number)
        runner = runner_for(backend, CPU, generated(source), Tally(), source)
        suspect = search(runner, FEW, number)
        runner.close()
        if suspect is not None:
            small = programs.smaller(suspect, source, backend, CPU)
            assert small.example.source.count("\n        v") <= 1, small.example.source
            assert programs.signature(small.example.source) <= programs.signature(source)
            return
    raise AssertionError("not found")
