"""A name of AutoDeploy that is gone takes away exactly the stages that it serves: none of them passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.backends.autodeploy import AutoDeployBackend
from conformance.backends.autodeploy.seam import names, outside
from conformance.processes import Job, Pool
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU

OBSERVED = {*STAGES} - {Stage.CACHE}  # on the CPU
SERVING = [key for key, name in names("x").items() if name.stages]


@pytest.mark.parametrize("key", SERVING)
def test_a_name_that_is_gone_is_the_reason_of_the_stages_it_serves(harness, key, monkeypatch):
    table = harness.loaded.seam
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    reasons = AutoDeployBackend().unavailable(CPU)
    assert {*reasons} == {*name.stages, Stage.CACHE}
    for stage in OBSERVED & {*name.stages}:
        assert f"AutoDeploy {harness.loaded.found.version} has no {name.path.replace(':', '.')}_gone" in reasons[stage]


@pytest.mark.parametrize("key", [key for key, name in outside.names.items() if name.stages])
def test_a_question_that_torch_no_longer_has_takes_away_every_stage(harness, key, monkeypatch):
    monkeypatch.setitem(outside.names, key, replace(outside.names[key], path=f"{outside.names[key].path}_gone"))
    assert {*AutoDeployBackend().unavailable(CPU)} == {*STAGES}


@pytest.mark.parametrize("key", SERVING)
def test_no_stage_that_a_missing_name_serves_passes(harness, key, monkeypatch):
    """Through the examination and the judge, as in a run that asks for these stages."""
    table = harness.loaded.seam
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    results = results_here(harness.micrographs["pointwise.chain"], AutoDeployBackend(), CPU, name.stages)
    assert {stage: str(result.verdict) for stage, result in results.items()} == dict.fromkeys(
        name.stages, "unavailable"
    )


def verdicts(harness: Any, key: str, say: Callable[[Any], None]) -> None:
    """In a process of its own: examine a micrograph with one name of the table gone."""
    torch.set_num_threads(1)
    table = harness.loaded.seam
    table.names[key] = replace(table.names[key], path=f"{table.names[key].path}_gone")
    results = results_here(harness.micrographs["pointwise.chain"], AutoDeployBackend(), CPU)
    say({stage: str(result.verdict) for stage, result in results.items()})


@pytest.mark.parametrize(
    "key", ["registry", "compile_backends", pytest.param("propagate_shapes", marks=pytest.mark.slow)]
)
def test_the_other_stages_are_still_observed(harness, key):
    served = {*harness.loaded.seam.names[key].stages, Stage.CACHE}
    for event in Pool(1, limit=400).run([Job(key, verdicts, (harness, key))]):
        assert event.death is None, event.death
        if event.said is not None:
            assert event.said == {stage: "unavailable" if stage in served else "pass" for stage in STAGES}
