"""The numbers in the README are those of the records, so that they cannot drift."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.errors import UsageError
from conformance.report.load import load
from conformance.report.matrix import combine
from conformance.report.readme import BEGIN, END, main, renewed
from tests.support.samples import Write, cell, compile_of

ROOT = Path(__file__).parents[2]


def test_the_readme_is_current() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    records = sorted((ROOT / "reports").glob("*.jsonl"))
    sweeps = load(sorted((ROOT / "reports" / "ops").glob("*.jsonl")))
    current = text == renewed(
        text, combine(load(records)), sweeps
    )  # compared here: pytest would take minutes to explain it
    assert current, "run `python -m conformance.report.readme`"


def test_versions_with_the_same_totals_share_a_row(write: Write, tmp_path: Path) -> None:
    for torch, verdict in (("2.11.0", "pass"), ("2.12.0", "pass"), ("2.15.0", "fail")):
        write(f"reports/{torch}.jsonl", compile_of("a.b", "inductor", "cpu", {"cache": verdict}), torch=torch)
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert CliRunner().invoke(main, [str(tmp_path / "README.md")]).exit_code == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "3 records of 1 micrograph, 7 stages: 21 cells, 1 cell unexpected." in text
    assert "| inductor | cpu | x86\\_64 AVX512 | 2.11.0, 2.12.0 | 7 of 7 |  |" in text
    assert "| inductor | cpu | x86\\_64 AVX512 | 2.15.0 | 6 of 7 | 1 fail |" in text


def test_operators_have_a_table_of_their_own(write: Write, tmp_path: Path) -> None:
    write("reports/run.jsonl", compile_of("a.b", "inductor", "cpu", {"cache": "pass"}))
    pairs = {"float32": "pass", "int8": "xfail"}
    write(
        "reports/ops/sweep.jsonl",
        [cell(f"runtime/inductor/cpu/ops.add:{dtype}", word) for dtype, word in pairs.items()],
    )
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n")
    assert CliRunner().invoke(main, [str(tmp_path / "README.md")]).exit_code == 0
    text = (tmp_path / "README.md").read_text()
    assert "1 record of 1 micrograph, 7 stages: 7 cells" in text
    assert "Every operator" in text and text.count("| inductor | cpu |") == 2


def test_a_document_without_a_place_is_the_users_mistake(write: Write) -> None:
    with pytest.raises(UsageError, match="no place for the records"):
        renewed("# Title\n", combine(load([write("run.jsonl", [cell("fusion/inductor/cpu/a.b")])])))
