"""Two examinations of one pass: the stage that changed its count, and a pattern that matches both graphs. Nothing is compiled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.passes.compare import change, generalized
from conformance.passes.environments import installed, python_for
from conformance.passes.examination import Examination
from conformance.passes.form import Form, Op, Ref, difference, side_by_side
from conformance.passes.near_miss import matches
from conformance.passes.pattern import Call, Input, Pattern, to_json
from conformance.passes.report import change_lines
from conformance.passes.rungs import CAPTURED, DECOMPOSED, EAGER, HOOK, Rung
from conformance.passes.soundness import Finding
from conformance.passes.versions import History, read
from conformance.stage import Stage
from conformance.torch_versions import requirement, versions


def form(*calls: tuple[str, str, tuple[Any, ...]]) -> Form:
    ops = [
        Op("x", "input", "x"),
        Op("y", "input", "y"),
        *(Op(n, "call", t, a, dtype="float32", shape=(4,)) for n, t, a in calls),
    ]
    return Form([*ops, Op("output", "output", "output", (Ref(ops[-1].name),))])


PRODUCT = Pattern("p", (Call(("add",), (Input("z"), Call(("mul",), (Input("x"), Input("y"))))),))
APART = form(("mul_1", "mul", (Ref("x"), Ref("y"))), ("add_1", "add", (Ref("x"), Ref("mul_1"))))
WHOLE = form(("addcmul_1", "addcmul", (Ref("x"), Ref("x"), Ref("y"))))


def examination(version: str, graphs: dict[str, Form], pattern: Pattern = PRODUCT) -> Examination:
    made = Examination("mine", "norms.one", "cpu", version)
    stages = {EAGER: None, CAPTURED: Stage.CAPTURE, DECOMPOSED: Stage.DECOMPOSITION, HOOK: Stage.POSTGRAD}
    for label, graph in graphs.items():
        made.rungs.append(Rung(label, stages[label], {"p": len(matches(pattern, graph))}, graph))
    made.matches = made.rungs[-1].matches
    made.patterns = [to_json(pattern)]
    return made


def test_a_decomposition_that_one_version_no_longer_does_is_named() -> None:
    old = examination("2.11.0", {EAGER: WHOLE, CAPTURED: WHOLE, DECOMPOSED: APART, HOOK: APART})
    new = examination("2.12.0", {EAGER: WHOLE, CAPTURED: WHOLE, DECOMPOSED: WHOLE, HOOK: WHOLE})
    moved = change(old, new)
    assert moved is not None and moved.stage is Stage.DECOMPOSITION
    assert moved.step == "the decomposition of addcmul, which only torch 2.11.0 does"
    assert moved.derived == "" and "no one pattern matches both" in moved.why
    lines = change_lines(moved)
    assert "norms.one: p 1 with torch 2.11.0, p 0 with torch 2.12.0" in lines
    assert any("|" in line and "addcmul" in line for line in lines)


def test_a_decomposition_that_makes_something_else_is_named_by_the_op_that_it_is_of() -> None:
    norm = form(("norm_1", "norm", (Ref("x"),)))
    one = form(("a", "sqrt", (Ref("x"),)), ("b", "reciprocal", (Ref("a"),)), ("c", "mul", (Ref("x"), Ref("b"))))
    two = form(("a", "rsqrt", (Ref("x"),)), ("c", "mul", (Ref("x"), Ref("a"))))
    pattern = Pattern("p", (Call(("reciprocal",), (Call(("sqrt",), (Input("x"),)),)),))
    old = examination("2.13.0", {CAPTURED: norm, DECOMPOSED: one, HOOK: one}, pattern)
    new = examination("2.14.1", {CAPTURED: norm, DECOMPOSED: two, HOOK: two}, pattern)
    for made in (old, new):
        made.rungs[1].origins = {"a": "norm", "b": "norm"}
    moved = change(old, new)
    assert moved is not None and moved.step == "the decomposition of norm (sqrt, reciprocal became rsqrt)"


def test_the_same_graph_and_pattern_leave_only_the_matcher() -> None:
    old = examination("2.14.1", {HOOK: APART})
    new = examination("2.15.0", {HOOK: APART})
    new.matches = {"p": 0}
    moved = change(old, new)
    assert moved is not None and moved.stage is None and moved.step == "torch's pattern matcher"
    assert change(old, old) is None


def test_a_pattern_that_differs_in_a_constant_is_loosened() -> None:
    pattern = Pattern("p", (Call(("mean",), (Call(("mul",), (Input("x"), Input("x"))), (-1,))),))
    one = form(("a", "mul", (Ref("x"), Ref("x"))), ("b", "mean", (Ref("a"), (-1,))))
    two = form(("a", "mul", (Ref("x"), Ref("x"))), ("b", "mean", (Ref("a"), (2,))))
    derived = generalized(pattern, one, two)
    assert derived is not None and matches(derived, one) and matches(derived, two)
    assert not matches(pattern, two)
    assert generalized(PRODUCT, APART, WHOLE) is None


def test_an_op_of_the_same_arguments_becomes_an_alternative() -> None:
    pattern = Pattern("p", (Call(("relu",), (Call(("neg",), (Input("x"),)),)),))
    one = form(("a", "neg", (Ref("x"),)), ("b", "relu", (Ref("a"),)))
    two = form(("a", "negative", (Ref("x"),)), ("b", "relu", (Ref("a"),)))
    derived = generalized(pattern, one, two)
    assert derived is not None and derived.calls()[1].targets == ("neg", "negative")


def test_an_examination_survives_json(tmp_path: Any) -> None:
    made = examination("2.15.0", {CAPTURED: WHOLE, HOOK: APART})
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"passes": {"mine.py:mine": [made.to_json()]}}))
    again = read(file)["mine.py:mine"][0]
    assert json.dumps(again.to_json()) == json.dumps(made.to_json())
    assert again.rungs[0].form is not None and again.rungs[0].form.canonical() == WHOLE.canonical()
    file.write_text("[]")
    with pytest.raises(UsageError, match="is not what"):
        read(file)


def test_a_history_is_a_table_of_counts_with_every_change() -> None:
    history = History("mine", ["2.11", "2.12", "2.13"])
    history.examined["2.11"] = {"norms.one": examination("2.11.0", {DECOMPOSED: APART, HOOK: APART})}
    history.examined["2.13"] = {"norms.one": examination("2.13.0", {DECOMPOSED: WHOLE, HOOK: WHOLE})}
    assert [history.count(version, "norms.one") for version in history.versions] == ["1", "?", "0"]
    assert [(made.old.torch, made.new.torch) for made in history.changes()] == [("2.11.0", "2.13.0")]
    history.examined["2.13"]["norms.one"].findings = [Finding("wrong_result", "output 0")]
    assert history.count("2.13", "norms.one", "p") == "0, wrong_result" and history.patterns("norms.one") == ["p"]


def test_graphs_that_differ_in_names_alone_are_the_same() -> None:
    other = form(("m", "mul", (Ref("x"), Ref("y"))), ("s", "add", (Ref("x"), Ref("m"))))
    assert other.canonical() == APART.canonical() and other.text() != APART.text()
    assert difference(APART, WHOLE)[-1] == "+return addcmul_1"
    assert side_by_side(APART.calls(), other.calls(), ("one", "two"))[1].count("|") == 0


# ----------------------------------------------------------------------------------------- environments


def test_ranges_of_versions_are_read() -> None:
    assert versions("2.11..2.13") == versions("2.11..13") == ["2.11", "2.12", "2.13"]
    assert versions("2.15, 2.14.1,2.15") == ["2.15", "2.14.1"]
    for wrong in ("2.x", "newest", "2.11..", "2.11.0..2.15.0", "2.15..2.11", "2.11..3.1", "", "nightly"):
        with pytest.raises(UsageError, match=r"is no (version|range) of torch: write "):
            versions(wrong)


def test_a_version_without_a_patch_number_is_its_newest_patch() -> None:
    assert [requirement(version) for version in ("2.14", "2.14.0", "2.16.0.dev20261101")] == [
        "torch~=2.14.0",
        "torch==2.14.0",
        "torch==2.16.0.dev20261101",
    ]


def test_a_given_interpreter_is_taken_before_one_is_installed(tmp_path: Any) -> None:
    known = {"2.14.0": "a", "2.14.1": "b", "2.15.0+cu132": "c"}
    assert (python_for("2.14", known), python_for("2.14.0", known), python_for("2.15", known)) == ("b", "a", "c")
    with pytest.raises(UsageError, match="no Python in"):
        installed([str(tmp_path)])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/false")
    with pytest.raises(UsageError, match="lacks torch"):
        installed([str(tmp_path)])
