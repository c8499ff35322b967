"""Fuzzing as a test: the `ci` profile, the same draws every time. Opt-in: `pytest -m fuzz`."""

from __future__ import annotations

import pytest

from conformance import backends
from conformance.fuzz.finding import confirm, finding_of
from conformance.fuzz.repro import script
from conformance.fuzz.runner import Tally, runner_for
from conformance.fuzz.search import PROFILES, search
from conformance.micrograph import Micrograph
from conformance.target import Target

pytestmark = pytest.mark.fuzz


def test_no_shape_stride_or_value_is_wrong(fuzzed: tuple[str, str, type[Micrograph]]) -> None:
    backend, target, micrograph = fuzzed
    runner = runner_for(backends.get(backend), Target.parse(target), micrograph, Tally())
    try:
        suspect = search(runner, PROFILES["ci"], 0)
    finally:
        runner.close()
    if suspect is None:
        return
    finding = confirm(finding_of(suspect.example, suspect.differences[0], backend, target))
    if not finding.confirmed:
        pytest.fail(f"{finding}\nnot reproduced in a fresh process: {suspect.example}", pytrace=False)
    pytest.fail(f"{finding}\n\n{script(finding)}", pytrace=False)
