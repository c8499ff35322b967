"""The view of operators: a sign for each operator, dtype and version; only what is wrong, or what differs between versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import record
from conformance.ops import coverage
from conformance.report.load import load
from conformance.report.matrix import combine
from conformance.report.operators import operators
from conformance.report.page import write_page
from tests.support.browser import Tab, serious
from tests.support.samples import Write, cell, finding


def swept(operator: str, dtype: str, how: str, wrong: bool = False) -> dict[str, Any]:
    found = (
        [finding("wrong_metadata", "transposed, 1 of 2 calls: torch.put(…): output 0: stride (3, 1)")] if wrong else []
    )
    line = cell(f"decomposition/inductor/cpu/ops.{operator}:{dtype}", "fail" if wrong else "pass", findings=found)
    return line | {"observation": {"how": {how: 2}, "wrong": {"transposed": ["wrong_metadata"]} if wrong else {}}}


def records(write: Write) -> list[Path]:
    old = [
        swept("put", "float32", "decomposed", wrong=True),
        swept("put", "int8", "decomposed"),
        swept("mm", "float32", "library call"),
    ]
    new = [
        swept("put", "float32", "decomposed"),
        swept("put", "int8", "decomposed"),
        swept("mm", "float32", "library call"),
    ]
    return [write("2.11.0.jsonl", old, torch="2.11.0"), write("2.15.0.jsonl", new, torch="2.15.0")]


def test_the_table(write: Write) -> None:
    matrix = combine(load(records(write)))
    cells = {key: index for index, key in enumerate(matrix.entries)}
    found = operators(matrix, cells)
    assert found is not None
    words = [word for word, *_ in found["words"]]
    assert [(matrix.columns[c].version, dtype) for c, dtype in found["across"]] == [
        ("2.11.0", "float32"), ("2.15.0", "float32"), ("2.11.0", "int8"), ("2.15.0", "int8"),
    ]  # fmt: skip
    rows = {name: {at[0]: (words[at[1]], at[2]) for at in row} for name, row in found["rows"]}
    assert rows["put"][0] == ("wrong", "transposed")
    assert rows["put"][1] == ("decomposed", "")
    assert rows["mm"] == {0: ("library call", ""), 1: ("library call", "")}


def test_a_matrix_without_operators_has_no_such_view(write: Write) -> None:
    matrix = combine(load([write("one.jsonl", [cell("runtime/inductor/cpu/norm.rms", "pass")])]))
    assert operators(matrix, {}) is None


def test_the_view(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "page.html"
    write_page(combine(load(records(write))), path)
    page = tab.open(path)
    page.click("#views [data-view=operators]")
    assert page.locator(".moves tbody tr").all_inner_texts() == [
        "put\tfloat32\twrong (transposed)\tdecomposed\tdecomposition: transposed, 1 of 2 calls: torch.put(…): output 0: stride (3, 1)"
    ]
    assert page.locator("summary", has_text="mended: 1 operator").is_visible()
    assert page.locator(".operators tbody th").all_inner_texts() == ["mm", "put"]
    assert page.locator(".operators tbody tr").nth(1).locator("button").all_inner_texts() == ["✗", "✓", "✓", "✓"]
    page.get_by_label("only what is wrong").check()
    assert page.locator(".operators tbody th").all_inner_texts() == ["put"]
    page.get_by_label("only what is wrong").uncheck()
    page.get_by_label("only what differs between versions").check()
    assert page.locator(".operators tbody th").all_inner_texts() == ["put"]
    page.locator(".operators button").first.click()
    assert "stride (3, 1)" in page.locator("#panel").inner_text()


def test_the_report_of_a_sweep_is_this_page_opened_on_what_changed(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "ops.html"
    coverage.write([record.read(file) for file in records(write)], path, changed=True)
    page = tab.open(path)
    assert page.locator("#views [aria-current=page]").inner_text() == "Operators"
    assert page.locator(".operators tbody th").all_inner_texts() == ["put"]
    page.get_by_label("only what differs between versions").uncheck()
    assert page.locator(".operators tbody th").all_inner_texts() == ["mm", "put"]
    page.fill("#q", "stride (3, 1)")
    assert page.locator(".operators tbody th").all_inner_texts() == ["put"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(write: Write, tmp_path: Path, chromium: Any, axe: str, scheme: str) -> None:
    write_page(combine(load(records(write))), tmp_path / "page.html", opens="operators")
    tab = Tab(chromium, 1400, 900, color_scheme=scheme)
    assert serious(tab.open(tmp_path / "page.html"), axe) == []
    tab.context.close()


def test_a_name_among_the_moves_searches_for_it(write: Write, tmp_path: Path, tab: Tab) -> None:
    path = tmp_path / "page.html"
    write_page(combine(load(records(write))), path)
    page = tab.open(path)
    page.click("#views [data-view=operators]")
    page.locator(".moves button", has_text="put").click()
    assert page.locator(".operators tbody th").all_inner_texts() == ["put"]
