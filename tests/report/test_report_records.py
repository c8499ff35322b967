"""Records as they come: several of them, broken ones, old ones, newer ones; and what they become beside the page."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from report_samples import STAGES, Write, cell, compile_of, header
from rich.console import Console

from conformance.errors import UsageError
from conformance.report.annotations import annotations
from conformance.report.commands import history as history_command
from conformance.report.commands import matrix as matrix_command
from conformance.report.history import trace
from conformance.report.junit import write_junit
from conformance.report.load import Loaded, load, version_key
from conformance.report.markdown import matrix_markdown
from conformance.report.matrix import Column, combine
from conformance.report.terminal import doctor_table, findings_list, matrix_table

RunOf = Callable[..., Loaded]


# ------------------------------------------------------------------------------------------------ reading


def test_half_a_line_is_said_and_the_rest_is_shown(write: Write) -> None:
    path = write("run.jsonl", compile_of("norm.a", "inductor", "cpu"))
    path.write_text(path.read_text() + '{"cell": "fusion/inductor/cpu/norm.b", "verd')
    matrix = combine(load([path]))
    assert len(matrix.entries) == 7
    assert [problem for problem in matrix.problems if "half-written" in problem] == matrix.problems


def test_an_unknown_verdict_is_shown_and_is_no_pass(write: Write) -> None:
    matrix = combine(load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b", "sublime"), cell("cache/inductor/cpu/a.b")])]))
    assert matrix.total().sentence() == "1 of 2 cells pass: 1 sublime"
    assert any("unknown verdict 'sublime'" in problem for problem in matrix.problems)


def test_an_empty_record_beside_a_good_one_is_one_line(write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    matrix = combine(load([tmp_path / "empty.jsonl", write("run.jsonl", [cell("fusion/inductor/cpu/a.b")])]))
    assert len(matrix.entries) == 1
    assert len([problem for problem in matrix.problems if "empty.jsonl is empty" in problem]) == 1
    with pytest.raises(UsageError, match="is empty"):
        load([tmp_path / "empty.jsonl"])


@pytest.mark.parametrize("text", ["hello", "[1, 2]", '{"a": 1}', "\x00\xff", '{"schema": "other/1"}'])
def test_what_is_no_record_is_the_users_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as error:
        load([path])
    assert "\n" not in str(error.value) and "x.jsonl" in str(error.value)


def test_a_header_alone_is_an_empty_matrix(write: Write) -> None:
    matrix = combine(load([write("run.jsonl", [])]))
    assert matrix.total().sentence() == "0 of 0 cells pass"
    assert matrix_markdown(matrix)


def test_deep_nesting_and_strange_names_are_left_out_with_a_line(write: Write) -> None:
    path = write("run.jsonl", [cell("no slashes"), cell("fusion/inductor/cpu/a.b")])
    path.write_text(path.read_text() + "[" * 100_000 + "\n")
    matrix = combine(load([path]))
    assert len(matrix.entries) == 1
    assert any("not of a cell" in problem for problem in matrix.problems) and any("line 4" in problem for problem in matrix.problems)


def test_overlap_shows_the_later_run_and_says_so(write: Write) -> None:
    late = write("late.jsonl", [cell("fusion/inductor/cpu/a.b", "fail")], started="2026-11-15T02")
    early = write("early.jsonl", [cell("fusion/inductor/cpu/a.b"), cell("cache/inductor/cpu/a.b")], started="2026-11-15T01")
    matrix = combine(load([late, early]))
    assert {entry.verdict for key, entry in matrix.entries.items() if key.stage == "fusion"} == {"fail"}
    assert len(matrix.entries) == 2
    assert "1 cells of the same version are in both early.jsonl and late.jsonl; late.jsonl is shown" in matrix.problems


def test_a_cell_twice_in_one_record_is_said(write: Write) -> None:
    matrix = combine(load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b"), cell("fusion/inductor/cpu/a.b", "fail")])]))
    assert any("repeats the cell" in problem for problem in matrix.problems)


def test_versions_and_machines_are_columns(write: Write) -> None:
    def env(torch: str, machine: str) -> dict[str, Any]:
        return {"torch": torch, "machine": machine, "backends": {"inductor": {"torch": torch}}}

    lines = [cell("fusion/inductor/cpu/a.b")]
    paths = [
        write(f"{k}.jsonl", lines, env=env(*given))
        for k, given in enumerate([("2.9.1", "x86_64"), ("2.15.0", "x86_64"), ("2.15.0", "aarch64")])
    ]
    matrix = combine(load(paths))
    assert [column.variant for column in matrix.columns] == ["2.9.1", "2.15.0 aarch64", "2.15.0 x86_64"]
    assert not matrix.problems and matrix.latest() == [Column("inductor", "cpu", "2.15.0 x86_64")]


def test_versions_sort_as_versions() -> None:
    said = ["2.15.0", "2.9.1", "2.11.0", "2.11.0a1", "2.11.0rc1", ""]
    assert sorted(said, key=version_key) == ["", "2.9.1", "2.11.0a1", "2.11.0rc1", "2.11.0", "2.15.0"]


def test_reports_do_not_need_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import conformance.report.commands; assert 'conformance.micrograph' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------------------------- formats


def matrix_of(*arguments: Any) -> Any:
    return CliRunner().invoke(matrix_command, [str(argument) for argument in arguments])


@pytest.fixture
def mixed(write: Write) -> Path:
    verdicts = dict(zip(STAGES, ["pass", "xfail", "fallback", "fail", "error", "blocked", "unavailable"], strict=True))
    lines = compile_of("norm.a", "inductor", "cpu", verdicts)
    lines[3] |= {"reason": "2 kernels, contract allows 1", "findings": [{"kind": "unfused", "check": "FUS001", "detail": "a|b"}]}
    return write("run.jsonl", lines)


def test_markdown_has_totals_with_denominators(mixed: Path, tmp_path: Path) -> None:
    assert matrix_of(mixed, "-o", tmp_path / "m.md").exit_code == 0
    text = (tmp_path / "m.md").read_text()
    assert "**1 of 7 cells pass (5 judged): 1 fail, 1 error, 1 fallback, 1 xfail, 1 blocked, 1 unavailable.**" in text
    assert "| `inductor` | `cpu` | `2.14.1` | 1 of 7 | 3 | 1/1 | 0/1 | 0/1 | 0/1 | 0/1 | 0/1 | 0/1 |" in text
    assert "| `norm.a` | `✓x↩✗E▫·` |" in text
    assert "2 kernels, contract allows 1" in text


def test_markdown_shows_the_newest_and_what_differs_between_versions(write: Write) -> None:
    old = write("old.jsonl", [*compile_of("a.same", "inductor", "cpu"), *compile_of("a.other", "inductor", "cpu")], torch="2.9.1")
    new = write(
        "new.jsonl",
        [*compile_of("a.same", "inductor", "cpu"), *compile_of("a.other", "inductor", "cpu", {"cache": "fail"})],
        torch="2.11.0",
    )
    text = matrix_markdown(combine(load([new, old])))
    cells, versions = text.split("## Between versions")
    assert "| `a.other` | `✓✓✓✓✓✓✗` |" in cells and "| `a.same` | `✓✓✓✓✓✓✓` |" in cells
    assert "### inductor cpu: 1 of 2 micrographs differ between versions" in versions
    assert "|  | 2.9.1 | 2.11.0 |" in versions and "| `a.other` | `✓✓✓✓✓✓✓` | `✓✓✓✓✓✓✗` |" in versions
    said = matrix_of(old, new).output
    assert "13 of 14" in said and said.count("✗") == 2  # the grid and the legend


def test_json(mixed: Path, tmp_path: Path) -> None:
    assert matrix_of(mixed, "-o", tmp_path / "m.json").exit_code == 0
    said = json.loads((tmp_path / "m.json").read_text())
    assert said["totals"] == {
        "inductor cpu 2.14.1": {stage: {verdict["verdict"]: 1} for stage, verdict in zip(STAGES, said["cells"], strict=True)}
    }


def test_an_output_of_no_known_kind_is_the_users_mistake(mixed: Path, tmp_path: Path) -> None:
    result = matrix_of(mixed, "-o", tmp_path / "m.pdf")
    assert isinstance(result.exception, UsageError) and "must end in .html, .md, .json, .xml" in str(result.exception)


def test_junit(mixed: Path, tmp_path: Path) -> None:
    write_junit(load([mixed])[0], tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "2",
        "errors": "1",
        "skipped": "3",
    }
    failed = {
        case.get("classname"): case.find("failure").get("message") for case in root.iter("testcase") if case.find("failure") is not None
    }  # type: ignore[union-attr]
    assert failed == {"inductor.cpu.postgrad": "fallback", "inductor.cpu.fusion": "fail: 2 kernels, contract allows 1"}


def test_annotations(mixed: Path, tmp_path: Path) -> None:
    (tmp_path / "norm.py").write_text("import x\n\n\nclass A(Micrograph):\n    pass\n")
    lines = list(annotations(load([mixed])[0], limit=2, micrographs=tmp_path))
    assert (
        lines[0]
        == f"::error title=fusion/inductor/cpu/norm.a,file={tmp_path.as_posix()}/norm.py,line=4::fail: 2 kernels, contract allows 1"
    )
    assert lines[2].startswith("::warning") and "1 more" in lines[2]
    assert lines[3].startswith("::notice") and "1 of 7 cells pass" in lines[3]


# ------------------------------------------------------------------------------------------------- history


def test_history_marks_flaky_apart_from_changed(write: Write, tmp_path: Path) -> None:
    flaky, steady, broke = "runtime/inductor/cpu/a.flaky", "runtime/inductor/cpu/a.steady", "runtime/inductor/cpu/a.broke"
    runs = [("2.11.0", "pass", "pass"), ("2.11.0", "fail", "pass"), ("2.15.0", "pass", "fail"), ("2.15.0", "pass", "fail")]
    for k, (torch, first, second) in enumerate(runs):
        write(f"records/{k}.jsonl", [cell(flaky, first), cell(steady), cell(broke, second)], torch=torch, started=f"2026-11-15T0{k}")
    found = trace(load(sorted((tmp_path / "records").glob("*.jsonl"))))
    assert ["/".join(trend.place) for trend in found.flaky] == [flaky]
    assert [("/".join(trend.place), trend.summary()) for trend in found.changed] == [(broke, "2.11.0 pass, 2.15.0 fail")]
    said = CliRunner().invoke(history_command, [str(tmp_path / "records")]).output
    assert "Flaky: 1 cells" in said and "a.steady" not in said
    for suffix in ("html", "md", "json"):
        assert CliRunner().invoke(history_command, [str(tmp_path / "records"), "-o", str(tmp_path / f"h.{suffix}")]).exit_code == 0
    assert [one["cell"] for one in json.loads((tmp_path / "h.json").read_text())["flaky"]] == [flaky]
    assert "a.flaky" in (tmp_path / "h.html").read_text() and "`✓✗✓✓`" in (tmp_path / "h.md").read_text()


@pytest.mark.parametrize("change", [{"suite": "s2"}, {"expectations": "e2"}, {"env": {"torch": "2.11.0", "machine": "aarch64"}}])
def test_another_suite_or_machine_explains_a_change(run_of: RunOf, change: dict[str, Any]) -> None:
    one = run_of("1.jsonl", [cell("runtime/inductor/cpu/a.b")], env={"torch": "2.11.0", "machine": "x86_64"})
    two = run_of("2.jsonl", [cell("runtime/inductor/cpu/a.b", "fail")], **{"env": {"torch": "2.11.0", "machine": "x86_64"}, **change})
    assert not trace([one, two]).flaky and trace([one, two]).changed


def test_numbers_that_moved_are_trends(run_of: RunOf) -> None:
    runs = [run_of(f"{k}.jsonl", compile_of("a.b", "inductor", "cpu", fusion={"kernels": k}), torch=f"2.{k}.0") for k in (11, 12)]
    assert [("/".join(trend.place), [point.number for point in trend.points]) for trend in trace(runs).moved] == [
        ("fusion/inductor/cpu/a.b", [11, 12])
    ]


def test_a_folder_without_records_is_the_users_mistake(tmp_path: Path) -> None:
    result = CliRunner().invoke(history_command, [str(tmp_path)])
    assert isinstance(result.exception, UsageError) and "no records in" in str(result.exception)


# ------------------------------------------------------------------------------------------------ terminal


def printed(renderable: Any, width: int = 100, **options: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=width, **options).print(renderable)
    return out.getvalue()


def many() -> dict[str, dict[str, Any]]:
    return {
        line["cell"]: line
        for k in range(80)
        for backend in ("autodeploy", "inductor", "torch_tensorrt")
        for line in compile_of(f"fam{k % 4}.graph_{k}", backend, "cpu", {"fusion": "fail"} if k == 7 else None)
    }


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_no_width_loses_a_sign(width: int) -> None:
    cells = {name: line for name, line in many().items() if name.endswith("_7")}
    said = printed(matrix_table(cells), width)
    assert max(map(len, said.splitlines())) <= width
    grid = said.split("c capture")[0]
    assert grid.count("✗") == 3 and grid.count("✓") == 18


def test_a_name_is_whole_where_there_is_room() -> None:
    name = "family.a_name_that_is_longer_than_a_third_of_the_line"
    cells = {line["cell"]: line for line in compile_of(name, "inductor", "cpu")}
    assert name in printed(matrix_table(cells), 80) and name not in printed(matrix_table(cells), 50)


def test_many_rows_are_folded_but_never_the_unexpected() -> None:
    said = printed(matrix_table(many(), rows=20))
    assert "fam3.graph_7" in said and "fam3: 19 as expected" in said and "graph_8" not in said
    assert "1,677 of 1,680" in said


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in printed(matrix_table(many()), force_terminal=True, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(matrix_table(many()), force_terminal=True)


def test_findings_are_listed_with_their_reasons() -> None:
    said = printed(findings_list({"a/b/c/d.e": cell("a/b/c/d.e", "fail", reason="why [bold]not")}, 5))
    assert "✗ fail a/b/c/d.e" in said and "why [bold]not" in said


def test_doctor_says_each_reason_once() -> None:
    missing = dict.fromkeys(STAGES, "not installed: pip install torch_tensorrt")
    reasons = {
        "inductor": {"cpu": {}, "sm_90": {"runtime": "no GPU"}, "sm_100": {"runtime": "no GPU"}},
        "torch_tensorrt": {"cuda": missing},
    }
    said = printed(doctor_table(reasons, {"inductor": {"torch": "2.14.1"}, "torch_tensorrt": {}}))
    assert said.count("no GPU") == 1 and "inductor/sm_90, sm_100 (runtime)" in said
    assert said.count("pip install torch_tensorrt") == 1 and "torch_tensorrt/cuda (all stages)" in said
    assert "torch 2.14.1" in said


def test_the_header_fixture_is_of_this_schema() -> None:
    assert header()["schema"] == "conformance/1"
