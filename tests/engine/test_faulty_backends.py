"""Every way of being wrong is caught, at the right stage, by the right name; and nothing is said of what is right."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._dynamo  # here, so that the processes of scenarios need not
import torch._inductor.compile_fx
from faulty_backends import (
    Lie,
    NullBackend,
    changed,
    drops_an_output,
    forgets_buffers,
    loses_mutations,
    returns_stale_storage,
    returns_the_first_answer,
    saves_in_one_place,
    takes_turns_with_two_storages,
    wrong_from_the_fifth_call,
    wrong_on_the_third_call,
)

from conformance import backends, core
from conformance.backends.base import Backend
from conformance.fresh import FRESH
from conformance.judge import Result
from conformance.library import load
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.verdict import Kind, Verdict

LIBRARY = load()
FRESH.prepare()  # for scenarios that are played in other processes: before any test starts threads


def examined(name: str, backend: Backend) -> dict[Stage, Result]:
    return results_here(LIBRARY[name], backend, CPU)


def first_bad(results: dict[Stage, Result]) -> tuple[Stage, Verdict, Kind | None] | None:
    for stage, result in results.items():
        if result.verdict is not Verdict.PASS:
            return stage, result.verdict, result.findings[0].kind if result.findings else None
    return None


@pytest.mark.parametrize(
    "name", ["pointwise.chain", "norm.add_rmsnorm", "mutation.two_inputs", "views.identity", "training.linear"]
)
def test_the_null_backend_passes(name: str) -> None:
    results = examined(name, NullBackend())
    assert {stage: result.verdict for stage, result in results.items()} == dict.fromkeys(STAGES, Verdict.PASS), {
        str(stage): result.reason for stage, result in results.items() if result.reason
    }


CORE = core.names()
REFUSED = {
    # The library that eager calls refuses it on some machines, in its own words. Nothing can be compared with it there.
    "upstream.complex_edges.sum_of_transform": "oneMKL",
    **{
        name: "compiles its own control flow"
        for name in LIBRARY
        if name.startswith("upstream.branches_with_gradients.")
    },
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in CORE else pytest.mark.slow) for name in LIBRARY]
)
def test_eager_passes_every_micrograph(name: str) -> None:
    results = examined(name, backends.get("eager"))
    if (runtime := results[Stage.RUNTIME]).verdict is Verdict.UNAVAILABLE and name in REFUSED:
        assert REFUSED[name] in runtime.reason
        return
    assert runtime.verdict is Verdict.PASS, runtime.reason
    assert {results[s].verdict for s in STAGES if s is not Stage.RUNTIME} == {Verdict.UNAVAILABLE}


LIES: list[tuple[str, str, Lie, Kind]] = [
    ("drops an output", "norm.add_rmsnorm", drops_an_output, Kind.WRONG_METADATA),
    ("a tuple for a tensor", "pointwise.chain", drops_an_output, Kind.WRONG_METADATA),
    ("wrong dtype", "pointwise.chain", changed(lambda t: t.double()), Kind.WRONG_METADATA),
    ("wrong shape", "pointwise.chain", changed(lambda t: t.unsqueeze(0)), Kind.WRONG_METADATA),
    ("wrong stride", "pointwise.chain", changed(lambda t: t.t().contiguous().t()), Kind.WRONG_METADATA),
    ("loses a mutation", "mutation.two_inputs", loses_mutations, Kind.LOST_MUTATION),
    ("forgets a buffer", "mutation.running_statistics", forgets_buffers, Kind.LOST_MUTATION),
    ("breaks an alias", "views.identity", changed(torch.clone), Kind.LOST_ALIAS),
    ("stale storage", "pointwise.chain", returns_stale_storage, Kind.STALE_OUTPUT),
    ("the first answer for ever", "pointwise.chain", returns_the_first_answer, Kind.WRONG_RESULT),
    ("wrong by one percent", "pointwise.chain", changed(lambda t: t * 1.01), Kind.WRONG_RESULT),
    ("wrong by one percent in bf16", "norm.rmsnorm", changed(lambda t: t * 1.012), Kind.WRONG_RESULT),
    (
        "wrong in one element",
        "pointwise.chain",
        changed(lambda t: t.index_fill(-1, torch.tensor([0]), 7.0)),
        Kind.WRONG_RESULT,
    ),
    (
        "NaN for a number",
        "pointwise.chain",
        changed(lambda t: t.index_fill(-1, torch.tensor([0]), float("nan"))),
        Kind.WRONG_RESULT,
    ),
    ("wrong on the third call", "pointwise.chain", wrong_on_the_third_call, Kind.WRONG_RESULT),
    ("wrong from the fifth call on", "pointwise.chain", wrong_from_the_fifth_call, Kind.WRONG_RESULT),
    ("two storages in turn", "pointwise.chain", takes_turns_with_two_storages, Kind.STALE_OUTPUT),
    ("saves for one backward only", "training.linear", saves_in_one_place, Kind.WRONG_RESULT),
]


@pytest.mark.parametrize(
    ("lie", "kind", "name"), [pytest.param(lie, kind, name, id=what) for what, name, lie, kind in LIES]
)
def test_a_lie_at_run_time_is_caught(lie: Lie, kind: Kind, name: str) -> None:
    results = examined(name, NullBackend(lie))
    stage, verdict, found = first_bad(results) or (None, None, None)
    assert (stage, verdict) == (Stage.RUNTIME, Verdict.FAIL), results[Stage.RUNTIME].reason
    assert found is kind and {f.check for f in results[Stage.RUNTIME].findings} <= {"LAD001", "RUN001", "RUN004"}
    assert results[Stage.CACHE].verdict is Verdict.BLOCKED


def test_the_stage_whose_program_differs_is_blamed() -> None:
    """The program is wrong since the post-grad passes: the stages before run right, those after are blocked."""

    class Rewritten(NullBackend):
        def compile(self, case: Any) -> Any:
            compiled = super().compile(case)
            eager = compiled.module
            compiled.at = lambda stage: eager if stage.order < Stage.POSTGRAD.order else lambda *x: eager(*x) + 1
            compiled.lie = lambda _, x: eager(*x) + 1
            return compiled

    results = examined("pointwise.chain", Rewritten())
    assert first_bad(results) == (Stage.POSTGRAD, Verdict.FAIL, Kind.WRONG_RESULT)


def test_an_exception_is_an_error_of_the_stage_that_raised_it() -> None:
    def raises(*_: Any) -> Any:
        raise RuntimeError("no kernel image")

    class Blaming(NullBackend):
        def compile(self, case: Any) -> Any:
            compiled = super().compile(case)
            compiled.blame = lambda error: Stage.CODEGEN
            return compiled

    results = examined("pointwise.chain", Blaming(raises))
    assert first_bad(results) == (Stage.CODEGEN, Verdict.ERROR, Kind.CRASH)
    assert "no kernel image" in results[Stage.CODEGEN].reason
