"""A name of Torch-TensorRT that is gone, or a step that it no longer calls, takes away exactly the stages that it
serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.backends.torch_tensorrt.seam import outside, seam
from conformance.library import load
from conformance.processes import Job, Pool
from conformance.seam import Seam
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import Target

pytestmark = pytest.mark.library
SM90 = Target("sm_90")
MICROGRAPH = load(Path(__file__).parent / "micrographs.py")["micrographs.plain"]
SERVING = [(table, key) for table in (seam, outside) for key, name in table.names.items() if name.stages]
HOOKS = [key for key, name in seam.names.items() if name.hook]
OBSERVED = {*STAGES} - {Stage.RUNTIME}  # for a described GPU


@pytest.mark.parametrize(
    ("table", "key"), SERVING, ids=lambda value: value if isinstance(value, str) else value.compiler
)
def test_a_name_that_is_gone_is_the_reason_of_the_stages_it_serves(
    table: Seam, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    reasons = backends.get("torch_tensorrt").unavailable(SM90)
    assert {*reasons} == {*name.stages, Stage.RUNTIME}
    for stage in OBSERVED & {*name.stages}:
        assert f"{table.version()} has no {name.path.replace(':', '.')}_gone" in reasons[stage]


@pytest.mark.parametrize(
    ("table", "key"), SERVING, ids=lambda value: value if isinstance(value, str) else value.compiler
)
def test_no_stage_that_a_missing_name_serves_passes(table: Seam, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the examination and the judge, as in a run that asks for these stages."""
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    results = results_here(MICROGRAPH, backends.get("torch_tensorrt"), SM90, name.stages)
    assert {stage: str(result.verdict) for stage, result in results.items()} == dict.fromkeys(
        name.stages, "unavailable"
    )


def never_called(*args: Any, **kwargs: Any) -> None:
    """Stands for a function of Torch-TensorRT that is still there, and that it has stopped calling."""


def verdicts(key: str, path: str, say: Callable[[Any], None]) -> None:
    """In a process of its own: examine a micrograph with one name of the table changed."""
    torch.set_num_threads(1)
    seam.names[key] = replace(seam.names[key], path=path)
    results = results_here(MICROGRAPH, backends.get("torch_tensorrt"), SM90)
    say({stage: (str(result.verdict), result.reason) for stage, result in results.items()})


def examined(path: Callable[[str], str], keys: list[str]) -> dict[str, dict[Stage, tuple[str, str]]]:
    """The verdicts of every stage, for each key whose path was changed."""
    backends.get("torch_tensorrt").preload(SM90)
    found: dict[str, dict[Stage, tuple[str, str]]] = {}
    for event in Pool(2, limit=400).run([Job(key, verdicts, (key, path(key))) for key in keys]):
        assert event.death is None, f"{event.job.key}: {event.death}"
        if event.said is not None:
            found[event.job.key] = event.said
    return found


@pytest.mark.slow  # as tests/headless/test_seam.py, with another compiler
def test_the_other_stages_are_still_observed() -> None:
    """One name for each set of stages."""
    one_each = {
        name.stages: key for key, name in seam.names.items() if 0 < len({*name.stages} & OBSERVED) < len(OBSERVED)
    }
    for key, results in examined(lambda key: f"{seam.names[key].path}_gone", [*one_each.values()]).items():
        served = {*seam.names[key].stages} & OBSERVED
        for stage in OBSERVED:
            verdict, reason = results[stage]
            assert verdict == ("unavailable" if stage in served else "pass"), (key, stage, verdict, reason)


def test_a_step_that_is_not_called_takes_away_the_stages_it_serves() -> None:
    for key, results in examined(lambda key: f"{__name__}:never_called", HOOKS).items():
        for stage in seam.names[key].stages:
            verdict, reason = results[stage]
            assert verdict == "unavailable" and "compiled a program without calling" in reason, (
                key,
                stage,
                verdict,
                reason,
            )
        assert "pass" in {verdict for verdict, _ in results.values()}, key
