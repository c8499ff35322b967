"""A private name that is gone, or that the compiler no longer calls, takes away exactly the stages that it serves: none
of them passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.backends.inductor.seam import seam, streams
from conformance.library import load
from conformance.processes import Job, Pool
from conformance.seam import MissingName, Name, Seam
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU, Target

MICROGRAPH = load()["pointwise.chain"]
SERVING = [key for key, name in seam.names.items() if name.stages and len(name.stages) < len(STAGES)]
EVERYWHERE = [key for key, name in seam.names.items() if len(name.stages) == len(STAGES)]
HOOKS = [key for key, name in seam.names.items() if name.hook]


def never_called(*args: Any, **kwargs: Any) -> None:
    """Stands for a function of torch that is still there, and that torch has stopped calling."""


def verdicts(key: str, path: str, say: Callable[[Any], None]) -> None:
    """In a process of its own: examine a micrograph with one name of the table changed."""
    torch.set_num_threads(2)
    seam.names[key] = replace(seam.names[key], path=path)
    results = results_here(MICROGRAPH, backends.get("inductor"), CPU)
    say({stage.value: (str(result.verdict), result.reason) for stage, result in results.items()})


def examined(path: Callable[[str], str], keys: list[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """The verdicts of every stage, for each key whose path was changed."""
    backends.get("inductor").preload(CPU)
    found: dict[str, Any] = {}
    for event in Pool(2, limit=240).run([Job(key, verdicts, (key, path(key))) for key in keys]):
        assert event.death is None, f"{event.job.key}: {event.death}"
        if event.said is not None:
            found[event.job.key] = event.said
    return found


@pytest.mark.slow
def test_a_name_that_is_gone_takes_away_the_stages_it_serves() -> None:
    found = examined(lambda key: f"{seam.names[key].path}_gone", [*SERVING, EVERYWHERE[0]])
    for key, results in found.items():
        served = {stage.value for stage in seam.names[key].stages}
        for stage, (verdict, reason) in results.items():
            if stage in served:
                assert verdict == "unavailable" and f"{seam.names[key].path.replace(':', '.')}_gone" in reason, (
                    key,
                    stage,
                    verdict,
                    reason,
                )
            else:
                assert verdict == "pass", (key, stage, verdict, reason)


def test_a_hook_that_is_not_called_takes_away_the_stages_it_serves() -> None:
    found = examined(lambda key: f"{__name__}:never_called", HOOKS)
    for key, results in found.items():
        for stage in seam.names[key].stages:
            verdict, reason = results[stage.value]
            assert verdict == "unavailable" and "compiled a program without calling" in reason, (
                key,
                stage,
                verdict,
                reason,
            )
        assert "pass" in {verdict for verdict, _ in results.values()} or key == "compile_fx"


@pytest.mark.parametrize("key", streams.names)
def test_a_name_that_only_a_real_gpu_needs_is_missed_there_alone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(streams.names, key, replace(streams.names[key], path=f"{streams.names[key].path}_gone"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    inductor = backends.get("inductor")
    assert {*inductor.unavailable(Target("cuda"))} == {*streams.names[key].stages}
    assert inductor.unavailable(CPU) == {}


def test_every_name_is_there_in_this_version() -> None:
    for name in backends.names():
        for table in backends.get(name).seams():
            gone = {key: line for key, line in table.missing().items() if table.names[key].stages}
            assert gone == {}


# ---------------------------------------------------------------------------------------------- the machinery


def table() -> tuple[Seam, SimpleNamespace]:
    owner = SimpleNamespace(double=lambda x: 2 * x, number=5)
    import conformance.seam as home

    home.__dict__["_example"] = owner
    names = {
        "double": Name("conformance.seam:_example.double", (Stage.FUSION,)),
        "number": Name("conformance.seam:_nothing|conformance.seam:_example.number"),
        "lost": Name("conformance.seam:_example.lost", (Stage.CODEGEN, Stage.CACHE)),
    }
    return Seam("example", lambda: "1.0", names), owner


def test_a_missing_name_is_named_with_the_version() -> None:
    example, _ = table()
    assert example.number == 5 and example.double(4) == 8
    with pytest.raises(MissingName, match=r"example 1\.0 has no conformance\.seam\._example\.lost"):
        example.lost  # noqa: B018
    assert {*example.unavailable()} == {Stage.CODEGEN, Stage.CACHE}


def test_a_name_is_wrapped_once_however_many_subscribe_and_given_back_in_any_order() -> None:
    example, owner = table()
    original = owner.double
    first = example.subscribe(double=lambda proceed, x: proceed(x) + 1)
    second = example.subscribe(double=lambda proceed, x: proceed(x) * 10)
    one = first.__enter__()
    wrapper = owner.double
    second.__enter__()
    assert owner.double is wrapper and owner.double(4) == (2 * 4 + 1) * 10
    first.__exit__(None, None, None)
    assert owner.double(4) == 80 and one.calls["double"] == 1
    second.__exit__(None, None, None)
    assert owner.double is original
