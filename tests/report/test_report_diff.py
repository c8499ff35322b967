"""Two runs compared: what is a regression, which stage moved first, what belongs together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from report_samples import Write, cell, compile_of

from conformance.report import facts
from conformance.report.commands import diff as diff_command
from conformance.report.diff import Swap, compare
from conformance.report.load import Loaded
from conformance.report.render_diff import COMMENT, diff_json, diff_markdown, diff_page

RunOf = Callable[..., Loaded]
NAME = "fusion/inductor/cpu/norm.a"


def kinds(run_of: RunOf, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    return [row.kind for row in compare(run_of("old.jsonl", old), run_of("new.jsonl", new)).rows]


@pytest.mark.parametrize(
    "old, new, kind",
    [
        ("pass", "fail", "regressed"),
        ("pass", "fallback", "regressed"),  # a fallback is never a pass
        ("pass", "unsupported", "regressed"),
        ("pass", "error", "regressed"),
        ("fallback", "fail", "regressed"),
        ("fail", "timeout", "regressed"),
        ("pass", "xfail", "regressed"),
        ("fail", "pass", "fixed"),
        ("xfail", "pass", "fixed"),
        ("xfail", "xpass", "fixed"),
        ("error", "fail", "moved"),
        ("fail", "fallback", "moved"),
        ("fail", "xfail", "moved"),  # the same behaviour, another expectation
        ("pass", "xpass", "moved"),
        ("pass", "unavailable", "gone"),  # not seen is not worse
        ("unavailable", "fail", "new"),
        ("pass", "blocked", "gone"),
    ],
)
def test_verdicts(run_of: RunOf, old: str, new: str, kind: str) -> None:
    assert kinds(run_of, [cell(NAME, old)], [cell(NAME, new)]) == [kind]


@pytest.mark.parametrize("word", ["pass", "fail", "xfail", "unavailable", "blocked"])
def test_nothing_moved(run_of: RunOf, word: str) -> None:
    line = cell(NAME, word, observation={"kernels": 1})
    again = {**line, "seconds": 99.0, "reason": "said in other words"}
    assert kinds(run_of, [line], [again]) == []


def test_new_and_gone(run_of: RunOf) -> None:
    assert kinds(run_of, [], [cell(NAME)]) == ["new"]
    assert kinds(run_of, [cell(NAME)], []) == ["gone"]


@pytest.mark.parametrize(
    "old, new, kind",
    [
        ({"kernels": 1}, {"kernels": 2}, "regressed"),  # the same answer with one kernel more
        ({"kernels": 2}, {"kernels": 1}, "moved"),
        ({"matches": {"addmm": 1}}, {"matches": {"addmm": 0}}, "regressed"),
        ({"matches": {"addmm": 1}}, {"matches": {}}, "regressed"),
        ({"matches": {"addmm": 1}}, {"matches": {"addmm": 2}}, "moved"),
        ({"breaks": 0}, {"breaks": 1}, "regressed"),
        ({"engines": 1}, {"engines": 3}, "regressed"),
        ({"guards": 10}, {"guards": 12}, "moved"),
        ({"ops": {"aten.add": 1}}, {"ops": {"aten.mul": 1}}, "moved"),
        ({"code_digest": "a"}, {"code_digest": "b"}, "reworded"),
        ({}, {"kernels": 2}, "moved"),  # not known before, so not worse
    ],
)
def test_observations_move_though_both_pass(run_of: RunOf, old: dict[str, Any], new: dict[str, Any], kind: str) -> None:
    assert kinds(run_of, [cell(NAME, observation=old)], [cell(NAME, observation=new)]) == [kind]


def test_failing_for_another_reason_is_a_movement(run_of: RunOf) -> None:
    def failing(kind: str, detail: str) -> list[dict[str, Any]]:
        return [cell(NAME, "fail", findings=[{"kind": kind, "check": "C1", "detail": detail}])]

    assert kinds(run_of, failing("unfused", "a"), failing("crash", "a")) == ["moved"]
    assert kinds(run_of, failing("unfused", "0.13 off"), failing("unfused", "0.14 off")) == []


@pytest.mark.parametrize("fact", ["compile_seconds", "seconds", "engine_bytes", "wall_ms", "cache_path"])
def test_volatile_facts_do_not_count(run_of: RunOf, fact: str) -> None:
    assert kinds(run_of, [cell(NAME, observation={fact: 1})], [cell(NAME, observation={fact: 2})]) == []
    assert facts.volatile(fact)


def test_one_cause_is_one_row_named_by_the_first_stage(run_of: RunOf) -> None:
    old = compile_of(
        "norm.a", "inductor", "cpu", decomposition={"ops": {"rsqrt": 1}}, postgrad={"matches": {"rmsnorm": 1}}, fusion={"kernels": 1}
    )
    new = compile_of(
        "norm.a",
        "inductor",
        "cpu",
        {"postgrad": "fail", "fusion": "blocked", "codegen": "blocked", "runtime": "blocked", "cache": "blocked"},
        decomposition={"ops": {"pow": 1}},
        postgrad={"matches": {"rmsnorm": 0}},
    )
    rows = compare(run_of("old.jsonl", old), run_of("new.jsonl", new)).rows
    assert len(rows) == 1
    assert (rows[0].kind, rows[0].first.place.stage, rows[0].worst.place.stage) == ("regressed", "decomposition", "postgrad")
    assert rows[0].said().startswith("ops.rsqrt 1 → none")
    assert "then postgrad: pass → fail" in rows[0].said()


def test_a_guard_more_or_a_new_digest_is_not_the_first_movement(run_of: RunOf) -> None:
    old = compile_of("norm.a", "inductor", "cpu", capture={"guards": 10}, decomposition={"graph_digest": "a"}, fusion={"kernels": 1})
    new = compile_of("norm.a", "inductor", "cpu", capture={"guards": 11}, decomposition={"graph_digest": "b"}, fusion={"kernels": 2})
    (row,) = compare(run_of("old.jsonl", old), run_of("new.jsonl", new)).rows
    assert row.first.place.stage == "fusion"


def test_rows_are_grouped_by_likely_cause(run_of: RunOf) -> None:
    old, new = [], []
    for name, before, after in (("a.x", 1, 2), ("a.y", 1, 3), ("b.z", 2, 4)):
        old += compile_of(name, "inductor", "cpu", fusion={"kernels": before})
        new += compile_of(name, "inductor", "cpu", fusion={"kernels": after})
    old += compile_of("c.w", "inductor", "cpu", capture={"breaks": 0})
    new += compile_of("c.w", "inductor", "cpu", capture={"breaks": 1})
    groups = compare(run_of("old.jsonl", old), run_of("new.jsonl", new)).groups
    assert [(group.stage, group.cause, len(group.rows)) for group in groups] == [
        ("fusion", "kernels grew", 3),
        ("capture", "breaks grew", 1),
    ]


def test_runs_that_cannot_be_compared_say_so(run_of: RunOf) -> None:
    old = run_of("old.jsonl", [cell(NAME, micrograph="d1", observation={"kernels": 1})])
    new = run_of(
        "new.jsonl",
        [cell(NAME, micrograph="d2", observation={"kernels": 2})],
        suite="other",
        expectations="e2",
        env={"torch": "2.15.0", "machine": "aarch64"},
    )
    found = compare(old, new)
    said = " ".join(found.warnings)
    for word in (
        "other suite revision (abc123 → other)",
        "other expectations",
        "other machine: x86_64 → aarch64",
        "1 micrographs were changed",
    ):
        assert word in said
    assert found.regressions == []  # a changed micrograph is no regression of the compiler
    assert not compare(old, old).warnings


def test_backends_and_targets_can_be_compared_with_each_other(run_of: RunOf) -> None:
    inductor = run_of("old.jsonl", compile_of("norm.a", "inductor", "cpu"))
    tensorrt = run_of("new.jsonl", compile_of("norm.a", "torch_tensorrt", "cuda", {"fusion": "fallback"}))
    found = compare(inductor, tensorrt)
    assert found.compared == 7 and [row.kind for row in found.rows] == ["regressed"]
    assert "compared across backends: inductor → torch_tensorrt" in found.warnings
    both = run_of(
        "both.jsonl", [*compile_of("norm.a", "inductor", "cpu"), *compile_of("norm.a", "torch_tensorrt", "cpu", {"cache": "fail"})]
    )
    assert [row.first.place.stage for row in compare(both, both, backend=Swap.parse("inductor:torch_tensorrt")).rows] == ["cache"]


# ------------------------------------------------------------------------------------------------ command


@pytest.fixture
def pair(write: Write) -> tuple[Path, Path]:
    old = write("2.11.jsonl", compile_of("norm.a", "inductor", "cpu", fusion={"kernels": 1}), torch="2.11.0")
    return old, write("2.15.jsonl", compile_of("norm.a", "inductor", "cpu", fusion={"kernels": 2}), torch="2.15.0")


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(diff_command, [str(argument) for argument in arguments])


def test_fail_on_regression(pair: tuple[Path, Path]) -> None:
    assert invoke(*pair).exit_code == 0
    assert invoke(*pair, "--fail-on", "regression").exit_code == 1
    assert invoke(pair[1], pair[0], "--fail-on", "regression").exit_code == 0  # fewer kernels
    assert invoke(pair[1], pair[0], "--fail-on", "moved").exit_code == 1


def test_an_expected_regression_does_not_fail(write: Write) -> None:
    old, new = write("old.jsonl", [cell(NAME)]), write("new.jsonl", [cell(NAME, "xfail")])
    assert invoke(old, new, "--fail-on", "regression").exit_code == 0


def test_terminal(pair: tuple[Path, Path]) -> None:
    said = invoke(*pair).output
    assert "torch 2.11.0 → 2.15.0" in said and "kernels 1 → 2" in said and "1 regressed" in said


def test_formats(pair: tuple[Path, Path], tmp_path: Path) -> None:
    for suffix in ("html", "md", "json"):
        assert invoke(*pair, "-o", tmp_path / f"diff.{suffix}").exit_code == 0
    said = json.loads((tmp_path / "diff.json").read_text())
    (group,) = said["groups"]
    assert (group["kind"], group["stage"], group["cause"]) == ("regressed", "fusion", "kernels grew")
    assert group["rows"][0]["first"]["facts"] == [["kernels", 1, 2]]
    assert said["compiles"]["regressed"] == 1 and said["regressions"] == 1
    assert "| `norm.a cpu` | kernels 1 → 2 |" in (tmp_path / "diff.md").read_text()
    assert "kernels 1 → 2" in (tmp_path / "diff.html").read_text()


def test_markdown_fits_a_comment_and_counts_what_it_leaves_out(run_of: RunOf) -> None:
    old, new = [], []
    for k in range(800):
        old += [cell(f"fusion/inductor/cpu/f{k}.a", observation={f"fact_{k}": 1})]
        new += [cell(f"fusion/inductor/cpu/f{k}.a", "fail", reason="x" * 150, findings=[{"kind": f"k{k}", "check": "C", "detail": ""}])]
    found = compare(run_of("old.jsonl", old), run_of("new.jsonl", new))
    text = diff_markdown(found)
    assert len(text) <= COMMENT
    shown = text.count("| `f")
    assert f"and {800 - shown} more groups" in text
    assert len(diff_json(found)["groups"]) == 800
    assert diff_page(found).count("<code>f") == 800
