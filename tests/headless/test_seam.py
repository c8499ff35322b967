"""A name that headless targets rely on and that is gone takes away exactly the stages that it serves: none of them
passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import backends, headless
from conformance.backends.inductor.seam import seam as inductor
from conformance.headless.seam import SUBSCRIBED, seam, triton
from conformance.library import load
from conformance.processes import Job, Pool
from conformance.seam import Seam
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU, Target

SM90 = Target("sm_90")
MICROGRAPH = load()["pointwise.chain"]
SERVING = [(table, key) for table in (seam, triton) for key, name in table.names.items() if name.stages]


@pytest.mark.parametrize(
    ("table", "key"), SERVING, ids=lambda value: value if isinstance(value, str) else value.compiler
)
def test_a_name_that_is_gone_is_the_reason_of_the_stages_it_serves(
    table: Seam, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    reasons = headless.unavailable(SM90)
    assert {*reasons} == {*name.stages}
    assert all(f"{table.version()} has no {name.path.replace(':', '.')}_gone" in reason for reason in reasons.values())
    assert headless.tables() == (seam, triton)
    assert backends.get("inductor").unavailable(CPU) == {}


@pytest.mark.parametrize(
    ("table", "key"), SERVING, ids=lambda value: value if isinstance(value, str) else value.compiler
)
def test_no_stage_that_a_missing_name_serves_passes(table: Seam, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the examination and the judge, as in a run that asks for these stages."""
    name = table.names[key]
    monkeypatch.setitem(table.names, key, replace(name, path=f"{name.path}_gone"))
    results = results_here(MICROGRAPH, backends.get("inductor"), SM90, name.stages)
    assert {stage: str(result.verdict) for stage, result in results.items()} == dict.fromkeys(
        name.stages, "unavailable"
    )


@pytest.mark.parametrize("key", SUBSCRIBED)
def test_a_name_of_inductors_that_is_gone_is_missed_here(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(inductor.names, key, replace(inductor.names[key], path="torch._inductor.nothing:at_all"))
    assert {*headless.unavailable(SM90)} == {*SUBSCRIBED[key]}


def never_called(*args: Any, **kwargs: Any) -> None:
    """Stands for a function of torch that is still there, and that torch has stopped calling."""


def verdicts(table: Seam, key: str, path: str, say: Callable[[Any], None]) -> None:
    """In a process of its own: examine a micrograph with one name of a table changed."""
    torch.set_num_threads(1)
    table.names[key] = replace(table.names[key], path=path)
    results = results_here(MICROGRAPH, backends.get("inductor"), SM90)
    say({stage: (str(result.verdict), result.reason) for stage, result in results.items()})


def examined(table: Seam, key: str, path: str) -> dict[Stage, tuple[str, str]]:
    backends.get("inductor").preload(SM90)
    found: dict[Stage, tuple[str, str]] = {}
    for event in Pool(1, limit=400).run([Job(key, verdicts, (table, key, path))]):
        assert event.death is None, event.death
        found |= event.said or {}
    return found


# One name for each set of stages that is not all of them: what is said of the others is the test above.
@pytest.mark.parametrize(("table", "key"), [(triton, "patch_language"), (triton, "compile"), (seam, "load_source")])
def test_the_other_stages_are_still_observed(table: Seam, key: str) -> None:
    found = examined(table, key, f"{table.names[key].path}_gone")
    served = {*table.names[key].stages}
    assert {stage for stage, (verdict, _) in found.items() if verdict == "unavailable"} == served
    assert {stage for stage, (verdict, _) in found.items() if verdict == "pass"} == {*STAGES} - served


def test_a_kernel_that_is_built_another_way_is_not_said_to_be_fine() -> None:
    found = examined(inductor, "build_triton_kernel", f"{__name__}:never_called")
    for stage in SUBSCRIBED["build_triton_kernel"]:
        assert found.get(stage, ("", ""))[0] != "pass", found
    verdict, reason = found[Stage.CODEGEN]
    assert verdict == "error" and "compiled a kernel without calling" in reason, (
        "how it ended, and what it may be owed to"
    )
