"""What a selftest keeps and counts: needs no compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import seeded
from conformance.errors import UsageError
from conformance.seeded.scoreboard import Board, Naming, Score, detections, write
from conformance.seeded.selftest import CLEAN, Caught, cases

FAULTS = seeded.all_faults()
RIGHT = Caught("fusion_off", "fusion", "unfused", "norm.layer_norm", seconds=2)
ELSEWHERE = Caught("wrong_silu", "codegen", "wrong_result", "mlp.swiglu")
MISSED = Caught("cache_off")
QUIET = Caught(f"{CLEAN}inductor/cpu/norm.layer_norm")
ALARM = Caught(f"{CLEAN}inductor/cpu/mlp.swiglu", alarms=["codegen/inductor/cpu/mlp.swiglu: fail: it differs"])


def test_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    path = tmp_path / "selftest.jsonl"
    board = Board(path)
    board.keep(RIGHT)
    board.keep(Caught("cache_off", unavailable="not in this version"))
    with path.open("a") as out:
        out.write('{"fault": "wrong_silu", "sta')  # killed while it wrote
    again = Board(path)
    assert again.known["fusion_off"] == RIGHT
    assert again.left(["fusion_off", "wrong_silu", "cache_off"]) == ["wrong_silu", "cache_off"]


def test_another_environment_adds_and_takes_nothing_away(tmp_path: Path) -> None:
    board = Board(tmp_path / "selftest.jsonl")
    board.keep(RIGHT)
    board.keep(Caught("fusion_off", unavailable="no such compiler here"))
    assert board.known["fusion_off"].detected
    assert Board(board.path).known["fusion_off"].detected


def test_counts() -> None:
    score = Score([RIGHT, ELSEWHERE, MISSED, QUIET, ALARM, Caught("no_shape_guards", unavailable="moved")], FAULTS)
    assert (len(score.asked), score.detected, score.right, len(score.alarms), len(score.unavailable)) == (3, 2, 1, 1, 1)
    assert score.lines()[0] == "detected 2 of 3 (67 %), right stage 1 (33 %), right kind 2"
    assert score.lines()[1].startswith("without a fault: 1 false alarms in 2 micrographs")


@pytest.mark.parametrize(
    ("caught", "enough"),
    [([RIGHT, QUIET], True), ([RIGHT, ALARM], False), ([RIGHT, MISSED], False), ([ELSEWHERE], False)],
)
def test_one_alarm_or_too_many_misses_are_not_enough(caught: list[Caught], enough: bool) -> None:
    assert Score(caught, FAULTS).enough is enough


def test_the_table_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- selftest -->\nold\n<!-- /selftest -->\nbelow\n")
    write(page, "selftest", detections(Score([RIGHT, ELSEWHERE, MISSED, QUIET, ALARM], FAULTS)))
    text = page.read_text()
    assert (
        text.startswith("above\n<!-- selftest -->")
        and text.endswith("<!-- /selftest -->\nbelow\n")
        and "old" not in text
    )
    assert (
        "| wrong_silu | silu is decomposed into x·tanh(x). | inductor cpu | decomposition | codegen ✗ | wrong_result |"
        in text
    )
    assert "| not found ✗ |" in text
    assert "- false alarm: codegen/inductor/cpu/mlp.swiglu: fail: it differs" in text
    (tmp_path / "bare.md").write_text("nothing")
    with pytest.raises(UsageError, match="no place for the table"):
        write(tmp_path / "bare.md", "selftest", "")


def test_a_culprit_counts_only_at_the_right_stage() -> None:
    right = Caught(
        "wrong_silu", "decomposition", "wrong_result", culprit="decomposition aten.silu.default", nodes=[9, 1]
    )
    other = Caught("wrong_silu", "codegen", "wrong_result", culprit="kernel cpp_fused_silu_0 aten.silu.default")
    unnamed = Caught("wrong_silu", "decomposition", "wrong_result", culprit="tracing aot_autograd")
    assert [Naming([one], FAULTS).right for one in (right, other, unnamed)] == [1, 0, 0]
    assert "| 9 → 1 |" in Naming([right], FAULTS).markdown()


def test_cases_without_a_fault_are_named_once() -> None:
    assert cases([FAULTS["fusion_off"], FAULTS["no_vertical_fusion"]]) == [
        f"{CLEAN}inductor/cpu/norm.layer_norm",
        f"{CLEAN}inductor/cpu/reduction.softmax",
    ]
