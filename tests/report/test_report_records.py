"""Records as they come: several of them, broken ones, old ones, newer ones; and what they become beside the page."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance.errors import UsageError
from conformance.report.annotations import annotations
from conformance.report.commands import matrix as matrix_command
from conformance.report.document import markdown
from conformance.report.junit import write_junit
from conformance.report.load import load, version_key
from conformance.report.matrix import Column, Matrix, combine
from conformance.report.matrix_document import matrix_blocks
from conformance.report.terminal import doctor_table, findings_list, matrix_table
from tests.support.samples import STAGES, Write, cell, compile_of


def matrix_markdown(matrix: Matrix) -> str:
    return markdown(matrix_blocks(matrix))


# ------------------------------------------------------------------------------------------------ reading


def test_half_a_line_is_said_and_the_rest_is_shown(write: Write) -> None:
    path = write("run.jsonl", compile_of("norm.a", "inductor", "cpu"))
    path.write_text(path.read_text() + '{"cell": "fusion/inductor/cpu/norm.b", "verd')
    matrix = combine(load([path]))
    assert len(matrix.entries) == 7
    assert [problem for problem in matrix.problems if "half-written" in problem] == matrix.problems


def test_an_unknown_verdict_is_shown_and_is_no_pass(write: Write) -> None:
    matrix = combine(
        load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b", "sublime"), cell("cache/inductor/cpu/a.b")])])
    )
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
    assert any("not of a cell" in problem for problem in matrix.problems) and any(
        "line 4" in problem for problem in matrix.problems
    )


def test_overlap_shows_the_later_run_and_says_so(write: Write) -> None:
    late = write("late.jsonl", [cell("fusion/inductor/cpu/a.b", "fail")], started="2026-11-15T02")
    early = write(
        "early.jsonl", [cell("fusion/inductor/cpu/a.b"), cell("cache/inductor/cpu/a.b")], started="2026-11-15T01"
    )
    matrix = combine(load([late, early]))
    assert {entry.verdict for key, entry in matrix.entries.items() if key.stage == "fusion"} == {"fail"}
    assert len(matrix.entries) == 2
    assert "1 cell of the same version in both early.jsonl and late.jsonl; late.jsonl is shown" in matrix.problems


def test_a_cell_twice_in_one_record_is_said(write: Write) -> None:
    matrix = combine(
        load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b"), cell("fusion/inductor/cpu/a.b", "fail")])])
    )
    assert any("repeats the cell" in problem for problem in matrix.problems)


def env(torch: str, machine: str, cpu: str = "AVX512", gpu: str | None = None) -> dict[str, Any]:
    return {"torch": torch, "machine": machine, "cpu": cpu, "gpu": gpu, "backends": {"inductor": {"torch": torch}}}


def test_each_machine_is_a_series_of_versions(write: Write) -> None:
    worlds = [
        ("2.9.1", "x86_64"),
        ("2.15.0", "x86_64"),
        ("2.14.0", "aarch64"),
        ("2.15.0", "x86_64", "AVX2"),
        ("2.15.0", "x86_64", "AVX2", "H200"),
    ]
    paths = [write(f"{k}.jsonl", [cell("fusion/inductor/cpu/a.b")], env=env(*world)) for k, world in enumerate(worlds)]
    matrix = combine(load(paths))
    assert [[(column.machine, column.version) for column in columns] for columns in matrix.series()] == [
        [("aarch64", "2.14.0")],
        [("x86_64 AVX2 H200", "2.15.0")],
        [("x86_64 AVX2 no GPU", "2.15.0")],
        [("x86_64 AVX512 no GPU", "2.9.1"), ("x86_64 AVX512 no GPU", "2.15.0")],
    ]
    assert not matrix.problems


def test_one_machine_needs_no_name_and_targets_are_in_order(write: Write) -> None:
    lines = [cell(f"fusion/inductor/{target}/a.b") for target in ("sm_100", "cpu", "sm_80", "sm_120", "cuda")]
    matrix = combine(load([write("run.jsonl", lines)]))
    assert matrix.columns[0] == Column("inductor", "cpu", "", "2.14.1")
    assert [column.target for column in matrix.columns] == ["cpu", "cuda", "sm_80", "sm_100", "sm_120"]


def test_versions_sort_as_versions() -> None:
    said = ["2.15.0", "2.9.1", "2.16.0.dev20261101", "2.11.0", "2.11.0a1", "2.11.0rc1", "", "1.3.0rc17 50ca49f8c5"]
    assert sorted(said, key=version_key) == [
        "",
        "1.3.0rc17 50ca49f8c5",
        *said[1:2],
        "2.11.0a1",
        "2.11.0rc1",
        "2.11.0",
        "2.15.0",
        said[2],
    ]


def test_reports_do_not_need_torch() -> None:
    modules = "conformance.report.commands, conformance.report.page, conformance.commands.show"
    code = (
        f"import sys; sys.modules['torch'] = None; import {modules}; assert 'conformance.micrograph' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------------------------- formats


def matrix_of(*arguments: Any) -> Any:
    return CliRunner().invoke(matrix_command, [str(argument) for argument in arguments])


@pytest.fixture
def mixed(write: Write) -> Path:
    verdicts = dict(zip(STAGES, ["pass", "xfail", "fallback", "fail", "error", "blocked", "unavailable"], strict=True))
    lines = compile_of("norm.a", "inductor", "cpu", verdicts)
    lines[3] |= {
        "reason": "2 kernels, contract allows 1",
        "findings": [{"kind": "unfused", "check": "FUS001", "detail": "a|b"}],
    }
    return write("run.jsonl", lines)


def test_markdown_has_totals_with_denominators(mixed: Path, tmp_path: Path) -> None:
    assert matrix_of(mixed, "-o", tmp_path / "m.md").exit_code == 0
    text = (tmp_path / "m.md").read_text()
    assert "**1 of 7 cells pass (5 judged): 1 fail, 1 error, 1 fallback, 1 xfail, 1 blocked, 1 unavailable.**" in text
    assert "| `inductor` | `cpu` |  | `2.14.1` | 1 of 7 | 3 | 1/1 | 0/1 | 0/1 | 0/1 | 0/1 | 0/1 | 0/1 |" in text
    assert "| `norm.a` | `✓x↩✗E▫·` |" in text
    assert "2 kernels, contract allows 1" in text


def test_markdown_shows_the_newest_and_what_differs_between_versions(write: Write) -> None:
    old = write(
        "old.jsonl",
        [*compile_of("a.same", "inductor", "cpu"), *compile_of("a.other", "inductor", "cpu")],
        torch="2.9.1",
    )
    new = write(
        "new.jsonl",
        [*compile_of("a.same", "inductor", "cpu"), *compile_of("a.other", "inductor", "cpu", {"cache": "fail"})],
        torch="2.11.0",
    )
    text = matrix_markdown(combine(load([new, old])))
    cells, versions = text.split("## Between versions")
    assert "| `a.other` | `✓✓✓✓✓✓✗` |" in cells and "| `a.same` | `✓✓✓✓✓✓✓` |" in cells
    assert "### inductor cpu: 1 of 2 micrographs with other verdicts" in versions
    assert "|  | 2.9.1 | 2.11.0 |" in versions and "| `a.other` | `✓✓✓✓✓✓✓` | `✓✓✓✓✓✓✗` |" in versions
    said = matrix_of(old, new).output
    assert "13 of 14" in said and said.count("✗") == 2  # the grid and the legend


def test_json(mixed: Path, tmp_path: Path) -> None:
    assert matrix_of(mixed, "-o", tmp_path / "m.json").exit_code == 0
    said = json.loads((tmp_path / "m.json").read_text())
    assert said["totals"] == {
        "inductor cpu 2.14.1": {
            stage: {verdict["verdict"]: 1} for stage, verdict in zip(STAGES, said["cells"], strict=True)
        }
    }


def test_what_was_written_is_said(mixed: Path, tmp_path: Path) -> None:
    out = matrix_of(mixed, "-o", tmp_path / "m.md").output
    assert out == f"wrote {tmp_path}/m.md: 7 cells of 1 record, {(tmp_path / 'm.md').stat().st_size:,} bytes\n"


def test_the_engines_own_word_on_what_is_unexpected(write: Write, tmp_path: Path) -> None:
    """A block whose cause was not asked for is unexpected; a failure that the engine allows is not."""
    lines = [
        cell("codegen/inductor/cpu/a.b", "blocked", unexpected=True, reason="capture failed"),
        cell("fusion/inductor/cpu/a.b", "fail", unexpected=False),
    ]
    run = load([write("run.jsonl", lines)])[0]
    assert [line[:7] for line in annotations(run)] == ["::error", "::notic"]
    write_junit(run, tmp_path / "junit.xml")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("failures") == "1"
    assert "codegen/inductor/cpu/a.b" in printed(findings_list(run.cells))


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
        case.get("classname"): case.find("failure").get("message")
        for case in root.iter("testcase")
        if case.find("failure") is not None
    }  # type: ignore[union-attr]
    assert failed == {"inductor.cpu.postgrad": "fallback", "inductor.cpu.fusion": "fail: 2 kernels, contract allows 1"}


def test_annotations(mixed: Path, tmp_path: Path) -> None:
    (tmp_path / "norm.py").write_text("import x\n\n\nclass A(Micrograph):\n    pass\n")
    lines = list(annotations(load([mixed])[0], limit=2, micrographs=tmp_path))
    assert (
        lines[0] == f"::error title=fusion/inductor/cpu/norm.a,file={tmp_path.as_posix()}/norm.py,line=4::"
        "fail: 2 kernels, contract allows 1"
    )
    assert lines[2].startswith("::warning") and "1 more" in lines[2]
    assert lines[3].startswith("::notice") and "1 of 7 cells pass" in lines[3]


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
