"""Fuzzing as a test: the `ci` profile, the same draws every time, in seconds. Opt-in: `pytest -m fuzz`.

Without `--micrograph` a few that stand for the rest; `--micrograph '*'` takes them all."""

from __future__ import annotations

import pytest

from conformance import backends
from conformance.fuzz import graph_gen, guard_search
from conformance.fuzz.coverage import Tally
from conformance.fuzz.example import Example
from conformance.fuzz.finding import confirm, finding_of
from conformance.fuzz.graph import Graph, micrograph_of
from conformance.fuzz.known import Register
from conformance.fuzz.repro import script
from conformance.fuzz.search import PROFILES, Suspect, search
from conformance.fuzz.served import runner_for
from conformance.fuzz.watchdog import PATIENCE
from conformance.micrograph import Micrograph
from conformance.oracle import Difference
from conformance.target import Target
from conformance.verdict import Finding

pytestmark = pytest.mark.fuzz


def test_no_shape_stride_or_value_is_wrong(fuzzed: tuple[str, str, type[Micrograph]]) -> None:
    backend, target, micrograph = fuzzed
    judge(searched(backend, target, micrograph), backend, target)


def test_captured_again_exactly_when_it_must(guarded: tuple[str, str, type[Micrograph]]) -> None:
    backend, target, micrograph = guarded
    found = guard_search.search_guards(micrograph, examples=2, patience=PATIENCE)
    judge(found and suspect_of(*found), backend, target)


@pytest.mark.parametrize("number", (2, 7, 21))
def test_no_graph_is_wrong(number: int, compiling: tuple[str, str]) -> None:
    graph = graph_gen.graph(number)
    judge(searched(*compiling, micrograph_of(graph), graph), *compiling)


def searched(backend: str, target: str, micrograph: type[Micrograph], graph: Graph | None = None) -> Suspect | None:
    found, where = backends.get(backend), Target.parse(target)
    runner = runner_for(found, where, micrograph, Tally(), graph, Register.of(found, where))
    runner.patience = PATIENCE
    try:
        return search(runner, graph_gen.budget(PROFILES["ci"]) if graph else PROFILES["ci"], 0)
    finally:
        runner.close()


def suspect_of(example: Example, finding: Finding) -> Suspect:
    return Suspect(example, (Difference(finding.kind, "capture", finding.detail),))


def judge(suspect: Suspect | None, backend: str, target: str) -> None:
    """What shows in a fresh process as well fails, with a script that shows it; so does what does not, since it was seen once."""
    if suspect is None:
        return
    finding = confirm(finding_of(suspect.example, suspect.differences[0], backend, target))
    if not finding.confirmed:
        pytest.fail(f"{finding}\nnot reproduced in a fresh process: {suspect.example}", pytrace=False)
    pytest.fail(f"{finding}\n\n{script(finding)}", pytrace=False)
