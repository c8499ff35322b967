"""A call that is wrong is found among many, alone and with its kind; a right one is never."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.errors import UsageError
from conformance.expectations import Expectation, Expectations
from conformance.ops import examination
from conformance.ops.call import Key
from conformance.ops.cells import Results, _findings
from conformance.ops.commands import in_shard
from conformance.ops.examination import Judged, Skipped, Task, examine
from conformance.ops.form import FORMS, LAYOUT_FORMS, calls_of, form_names
from conformance.ops.operator import operators
from conformance.ops.sweep import Sweep
from conformance.ops.words import CRASH, DECOMPOSED, REFUSES, entry_of

from . import rungs
from .database import operator

BOTH = ("float32", "bfloat16")


def judged(
    rung: Any, name: str = "mul", forms: tuple[str, ...] = LAYOUT_FORMS, dtypes: tuple[str, ...] = BOTH
) -> list[Judged]:
    said: list[Any] = []
    examine(Task(operator(name), dtypes, forms, 3, (rung,)), said.append)
    return [one for one in said if isinstance(one, Judged)]


def kinds(found: list[Judged]) -> set[str]:
    return {kind for one in found for kind, _ in one.findings}


@pytest.mark.parametrize("name", ["mul", "cumsum", "dropout"])
def test_eager_itself_is_right_in_every_form(name: str) -> None:
    found = judged(rungs.Eager(), name, tuple(FORMS))
    assert kinds(found) == set()
    assert {one.key.form for one in found} >= {"plain", "transposed", "expanded", "sliced", "empty"}


def test_calls_share_compiles() -> None:
    rung = rungs.Eager()
    found = judged(rung)
    assert len(found) > 15
    assert len(rung.compiles) <= len(found) / 6


@pytest.mark.parametrize(
    "rung, kind",
    [
        (rungs.Doubled, "wrong_result"),
        (rungs.OtherDtype, "wrong_metadata"),
        (rungs.OtherStrides, "wrong_metadata"),
    ],
)
def test_a_wrong_rung_is_caught(rung: Any, kind: str) -> None:
    found = judged(rung(), forms=("plain",))
    assert kinds(found) == {kind}


def test_a_lost_write_is_caught() -> None:
    assert "lost_mutation" in kinds(judged(rungs.LostWrite(), forms=("in_place", "in_place_on_view", "out")))


def test_a_lost_alias_is_caught() -> None:
    assert "lost_alias" in kinds(judged(rungs.LostAlias(), forms=("in_place",)))


def test_the_values_of_a_random_operator_are_left_alone_and_its_dtype_is_not() -> None:
    assert kinds(judged(rungs.Doubled(), "dropout", ("plain",))) == set()
    assert kinds(judged(rungs.OtherDtype(), "dropout", ("plain",))) == {"wrong_metadata"}


def test_only_the_form_that_is_wrong_is_found() -> None:
    found = judged(rungs.OnlyTransposed())
    assert {one.key.form for one in found if one.findings} == {"transposed"}
    assert any(one.key.form == "plain" and one.how == DECOMPOSED for one in found)


def test_a_refusal_is_split_down_to_the_calls_that_are_refused() -> None:
    found = judged(rungs.Refusing())
    assert {(one.key.dtype, one.how) for one in found} == {("float32", DECOMPOSED), ("bfloat16", REFUSES)}


def test_a_compiler_that_says_why_it_refuses_is_not_asked_twice_and_its_stage_and_converters_are_told() -> None:
    rung = rungs.SaysWhy(by_design=False)
    found = [one for one in judged(rung, forms=("plain",)) if one.key.dtype == "bfloat16"]
    assert {(one.how, one.stage, one.unbuilt) for one in found} == {(REFUSES, "fusion", ("aten.mul.Tensor",))}
    assert kinds(found) == {"crash"}
    assert rung.compiles.count(1) == len(found)


def test_what_a_compiler_does_not_take_by_design_is_no_finding() -> None:
    task, said = Task(operator("mul"), ("bfloat16",), ("plain",), 3, (rungs.SaysWhy(by_design=True),)), []
    examine(task, said.append)
    found = {("decomposition", one.key): one for one in said if isinstance(one, Judged)}
    sweep = Sweep("eager", "cpu", (task.operator,), task.dtypes, task.forms, 3, task.rungs)
    (line,) = Results(sweep, task, found, {}).lines(Expectations([], {}))
    assert (line["verdict"], line["findings"]) == ("unsupported", [])
    assert line["reason"] == "ValueError: no bfloat16"
    assert entry_of({"decomposition": line}).word == REFUSES


@pytest.mark.parametrize(
    "forms, samples, verdict", [(LAYOUT_FORMS, 3, "xpass"), (("plain",), 3, "pass"), (LAYOUT_FORMS, 1, "pass")]
)
def test_what_is_known_to_be_wrong_must_show_only_where_all_is_asked_for(
    forms: tuple[str, ...], samples: int, verdict: str
) -> None:
    task, said = Task(operator("mul"), ("float32",), forms, samples, (rungs.Eager(),)), []
    examine(task, said.append)
    found = {("decomposition", one.key): one for one in said if isinstance(one, Judged)}
    sweep = Sweep("inductor", "cpu", (task.operator,), task.dtypes, forms, samples, task.rungs)
    known = Expectation("*/inductor/cpu/ops.mul:float32", "wrong_result", "", "", "a report", "it was wrong", "here")
    (line,) = Results(sweep, task, found, {}).lines(Expectations([known], {}))
    assert line["verdict"] == verdict


def test_strides_do_not_count_where_results_have_memory_of_their_own() -> None:
    assert kinds(judged(rungs.OtherStrides(), forms=("plain",))) == {"wrong_metadata"}
    assert kinds(judged(rungs.OwnMemory(), forms=("plain",))) == set()


def test_shards_are_all_operators_once() -> None:
    names = [f"op{index}" for index in range(10)]
    assert sorted(name for which in (1, 2, 3) for name in in_shard(names, f"{which}/3")) == sorted(names)
    for wrong in ("0/3", "4/3", "1", "a/b", "-1/2"):
        with pytest.raises(UsageError, match="--shard takes K/N"):
            in_shard(names, wrong)


def test_gradients_of_a_wide_program_are_those_of_eager() -> None:
    found = judged(rungs.Eager(), forms=("grad",))
    assert found and kinds(found) == set()
    assert kinds(judged(rungs.Doubled(), forms=("grad",))) == {"wrong_result"}


def test_a_second_call_has_other_sizes() -> None:
    calls = list(calls_of(operator(), "float32", ("resized",), 3))
    assert calls and all(call.again[0].shape != call.tensors[0].shape for call in calls)
    assert kinds(judged(rungs.Eager(), forms=("resized",))) == set()


@pytest.mark.own_process
def test_the_call_that_kills_a_process_is_found_and_the_others_are_judged() -> None:
    sweep = Sweep("inductor", "cpu", (operator(),), BOTH, LAYOUT_FORMS, 3, (rungs.Dying(),), limit=60)
    (results,) = list(sweep.run(1))
    dead = [one for one in results.judged.values() if one.how == CRASH]
    assert [(one.key.dtype, one.key.form) for one in dead] == [("bfloat16", "sliced")]
    assert sum(one.how == DECOMPOSED for one in results.judged.values()) > 15
    lines = {line["cell"]: line for line in results.lines(Expectations([], {}))}
    assert lines["decomposition/inductor/cpu/ops.mul:float32"]["verdict"] == "pass"
    line = lines["decomposition/inductor/cpu/ops.mul:bfloat16"]
    assert line["verdict"] == "error" and "SIGSEGV" in line["findings"][0]["detail"]


@pytest.mark.own_process
def test_a_call_that_does_not_end_in_eager_is_skipped_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examination, "EAGER_SECONDS", 1.0)
    sweep = Sweep("inductor", "cpu", (operator("endless"),), ("float32",), ("plain",), 3, (rungs.Eager(),), limit=60)
    (results,) = list(sweep.run(1))
    assert [reason for reason in results.skipped.values() if "SIGALRM" in reason]
    assert [one.how for one in results.judged.values()] == [DECOMPOSED]


def test_what_checks_no_index_is_not_called_without_elements() -> None:
    known = operator("cumsum")
    known.info.name = "_unsafe_index"
    assert not list(calls_of(known, "float32", ("empty",), 2))
    assert list(calls_of(known, "float32", ("plain",), 2))


def test_a_kernel_that_takes_contiguous_inputs_is_asked_with_them_alone() -> None:
    known = operator("cumsum")
    known.info.name = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"
    assert {call.key.form for call in calls_of(known, "float32", LAYOUT_FORMS, 2)} == {"plain"}


def test_the_other_databases_are_asked_with_contiguous_floats() -> None:
    known = operators()
    assert {"add", "NumpyCubeCustomOp", "cond.simple"} <= set(known)
    for name in ("NumpyCubeCustomOp", "cond.simple"):
        assert not known[name].public() and set(known[name].dtypes()) <= {"float32", "float64", "float16", "bfloat16"}
        assert {call.key.form for call in calls_of(known[name], "float32", LAYOUT_FORMS, 1)} == {"plain"}
    assert known["add"].public() and "int8" in known["add"].dtypes()


def test_what_eager_refuses_is_skipped() -> None:
    said: list[Any] = []
    examine(Task(operator("cumsum"), ("float32",), ("twice", "plain"), 2, (rungs.Eager(),)), said.append)
    assert not [one for one in said if isinstance(one, Skipped)]
    assert all(one.key.form == "plain" for one in said if isinstance(one, Judged))


def test_form_names() -> None:
    assert form_names(["layouts"]) == LAYOUT_FORMS
    assert "errors" in form_names(["all"])


def test_every_layout_keeps_its_values() -> None:
    for call in calls_of(operator("cumsum"), "float32", ("plain", "transposed", "sliced"), 2):
        assert call.tensors[0].shape in {torch.Size((3, 4)), torch.Size((4, 6))}
        assert bool((call.tensors[0] >= 1).all())


def test_the_results_of_a_task_are_a_line_for_each_dtype() -> None:
    said: list[Any] = []
    task = Task(operator(), BOTH, LAYOUT_FORMS, 3, (rungs.OnlyTransposed(),))
    examine(task, said.append)
    found = {(one.rung, one.key): one for one in said if isinstance(one, Judged)}
    sweep = Sweep("inductor", "cpu", (task.operator,), BOTH, LAYOUT_FORMS, 3, task.rungs)
    lines = list(Results(sweep, task, found, {}).lines(Expectations([], {})))
    assert [line["verdict"] for line in lines] == ["fail", "fail"]
    assert lines[0]["observation"]["wrong"] == {"transposed": ["wrong_result"]}
    assert lines[0]["findings"][0]["detail"].startswith("transposed, ")


@pytest.mark.parametrize(
    ("how", "kind", "check"),
    [
        ("compiled", "wrong_result", "OPS001"),
        ("refuses", "crash", "OPS002"),
        ("compiled", "lost_validation", "OPS003"),
        ("crash", "crash", "OPS004"),
    ],
)
def test_the_check_of_a_finding(how: str, kind: str, check: str) -> None:
    key = Key("float32", "plain", 0)
    (found,) = _findings({key: Judged("decomposed", key, how, [(kind, "so")])})
    assert (found.check, found.kind.value) == (check, kind)
