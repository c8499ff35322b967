"""A record is judged again by the expectations of now; what was measured stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import environment, expectations, record, record_writer
from conformance.cli import main
from conformance.judge_record import judge_again, judged
from conformance.library import load

HEADER = {"schema": record.SCHEMA, "suite": "abc", "env": {"torch": "2.14.1", "machine": "x86_64", "backends": {}}}
REPORTS = Path(__file__).resolve().parents[2] / "reports"
LOST = {"kind": "lost_mutation", "check": "LAD001", "detail": "the input keeps its value"}
ENTRY = """
[[expect]]
cell = "runtime/inductor/cpu/mutation.*"
kind = "lost_mutation"
when = "torch>=2.14,<2.15"
url = "https://example.org/1"
why = "known"
"""


def line(name: str, verdict: str, **more: Any) -> dict[str, Any]:
    whole = {"cell": name, "verdict": verdict, "reason": "", "findings": [], "observation": {"fact": 1}, "texts": {}}
    return {**whole, "seconds": 1.5, "unexpected": verdict in ("fail", "xpass"), **more}


def written(path: Path) -> Path:
    writer = record_writer.Writer(path, HEADER)
    for one in (
        line("runtime/inductor/cpu/mutation.add", "fail", findings=[LOST], reason=LOST["detail"]),
        line(
            "cache/inductor/cpu/mutation.add",
            "blocked",
            cause="runtime/inductor/cpu/mutation.add",
            reason="runtime fail: the input keeps its value",
            observation={},
        ),
        line("runtime/inductor/cpu/mutation.right", "pass"),
        line("runtime/inductor/cpu/views.right", "pass"),
        line("runtime/inductor/cpu/views.away", "unavailable", reason="needs a GPU"),
    ):
        writer.add(one)
    writer.close()
    return path


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "x.toml").write_text(text)
    return path


@pytest.mark.parametrize("said", [{}, {"said": {"verdict": "fallback", "reason": "no op was taken"}}])
def test_an_expected_fallback_stays_one_and_is_unexpected_where_no_entry_names_it(said: dict, tmp_path: Path) -> None:
    writer = record_writer.Writer(path := tmp_path / "r.jsonl", HEADER)
    writer.add(line("fusion/inductor/cpu/views.left", "xfail", reason="known (no op was taken)", **said))
    writer.close()
    entry = '[[expect]]\ncell = "fusion/inductor/cpu/views.left"\nverdict = "fallback"\nurl = "https://example.org/1"\nwhy = "known"\n'
    judge_again(path, {}, folder(tmp_path / "e", entry), "")
    (kept,) = record.read(path).cells.values()
    assert (kept["verdict"], kept["reason"]) == ("xfail", "known (no op was taken)")
    judge_again(path, {}, folder(tmp_path / "none", ""), "")
    (alone,) = record.read(path).cells.values()
    assert alone["verdict"] == "fallback" and alone["unexpected"] and "no op was taken" in alone["reason"]


def test_what_is_expected_now_is_xfail_and_what_passes_all_the_same_xpass(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    before = record.read(path).cells
    assert judge_again(path, {}, folder(tmp_path / "e", ENTRY), "1234567") == (3, 1, 1)
    run = record.read(path)
    after = run.cells
    assert [(one["verdict"], one["unexpected"]) for one in after.values()] == [
        ("xfail", False),
        ("blocked", False),
        ("xpass", True),
        ("pass", False),
        ("unavailable", False),
    ]
    failed, blocked = list(after.values())[:2]
    assert failed["url"] == "https://example.org/1" and failed["reason"] == "known (the input keeps its value)"
    assert blocked["reason"] == "runtime xfail: known (the input keeps its value)"
    assert run.header["judged"] == "1234567" and run.header["expectations"]
    for name, old in before.items():
        measured = ("findings", "observation", "texts", "seconds")
        assert [old[key] for key in measured] == [after[name][key] for key in measured]


def test_taking_the_entry_away_gives_the_record_back(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    before = record.read(path).cells
    judge_again(path, {}, folder(tmp_path / "e", ENTRY), "")
    assert judge_again(path, {}, folder(tmp_path / "none", ""), "") == (3, 1, 1)
    assert record.read(path).cells == before


@pytest.mark.parametrize("argv, verdict", [(["ops"], "xpass"), (["ops", "--form", "plain"], "pass")])
def test_operators_fall_back_as_before_and_pass_where_the_form_that_fails_was_not_asked_for(
    argv: list[str], verdict: str, tmp_path: Path
) -> None:
    writer = record_writer.Writer(path := tmp_path / "r.jsonl", {**HEADER, "argv": argv})
    writer.add(line("runtime/inductor/cpu/ops.take:int8", "fallback", reason="a graph break"))
    writer.add(line("runtime/inductor/cpu/ops.put:int8", "pass"))
    writer.close()
    entry = ENTRY.replace("mutation.*", "ops.put:int8")
    judge_again(path, {}, folder(tmp_path / "e", entry), "")
    assert [(one["verdict"], one["unexpected"]) for one in record.read(path).cells.values()] == [
        ("fallback", False),
        (verdict, verdict == "xpass"),
    ]


def test_the_command_says_what_changed_and_fails_for_what_is_unexpected(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path / "r.jsonl")
    with pytest.raises(SystemExit) as end:
        main(["judge", str(path), "--expectations", str(folder(tmp_path / "e", ENTRY))])
    assert end.value.code == 1
    assert "3 cells changed; unexpected: 1 before, 1 now" in capsys.readouterr().out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e", "r.jsonl"], "no unfinished file is left"


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*-x86_64-*-inductor.jsonl")), ids=lambda path: path.stem)
def test_a_published_record_is_judged_as_it_was(path: Path) -> None:
    """Its facts, judged now, give the findings that were recorded: nothing that a check reads is lost in a record."""
    run = record.read(path)
    library = load()
    for name, line in zip(
        run.cells, judged(run, library, expectations.load(None, environment.versions(run.header["env"]))), strict=True
    ):
        assert (line["verdict"], line["findings"]) == (run.cells[name]["verdict"], run.cells[name]["findings"]), name
