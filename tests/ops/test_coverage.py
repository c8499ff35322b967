"""The coverage table says of each operator the worst that a record has, and two versions are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.checks import measured
from conformance.errors import UsageError
from conformance.ops import words
from conformance.ops.coverage import coverage, write
from conformance.record import Run, read
from conformance.record_writer import Writer


def line(
    stage: str, name: str, how: str, finding: tuple[str, str, str] | None = None, form: str = "transposed"
) -> dict[str, Any]:
    """A cell as a sweep writes it; finding: kind, check, detail."""
    found = [dict(zip(("kind", "check", "detail"), finding, strict=True))] if finding else []
    facts: dict[str, Any] = {"calls": 3, "how": {how: 3}, "wrong": {form: [finding[0]]} if finding else {}}
    verdict = "fail" if finding else "pass"
    return {"cell": f"{stage}/inductor/cpu/ops.{name}", "verdict": verdict, "findings": found, "observation": facts}


def record(path: Path, version: str, *lines: dict[str, Any]) -> Run:
    env = {"torch": version, "backends": {"inductor": {"torch": version}}}
    writer = Writer(path, {"env": env})
    for one in lines:
        writer.add(one)
    writer.close()
    return read(path)


STRIDES = ("wrong_metadata", "OPS001", "transposed, 1 of 3 calls: stride (1, 3), eager has (4, 1)")


@pytest.fixture
def old(tmp_path: Path) -> Run:
    return record(
        tmp_path / "old.jsonl",
        "2.11.0",
        line("decomposition", "add:float32", "decomposed"),
        line("runtime", "add:float32", "compiled"),
        line("decomposition", "put:float32", "decomposed", STRIDES),
        line("runtime", "put:float32", "fallback"),
        line("runtime", "mm:float32", "library call"),
        line("runtime", "sort:float32", "refuses", ("crash", "OPS002", "plain: LoweringException")),
        line("runtime", "gcd:int32", "crash", ("crash", "OPS004", "special: SIGFPE")),
    )


@pytest.fixture
def new(tmp_path: Path) -> Run:
    return record(
        tmp_path / "new.jsonl",
        "2.15.0",
        line("runtime", "add:float32", "compiled"),
        line("runtime", "put:float32", "fallback"),
        line("runtime", "mm:float32", "library call"),
    )


def test_the_word_of_each_operator(old: Run) -> None:
    words = {(row, column.dtype): entry.word for (row, column), entry in coverage([old]).entries.items()}
    assert words == {
        ("add", "float32"): "compiled",
        ("put", "float32"): "wrong",
        ("mm", "float32"): "library call",
        ("sort", "float32"): "refuses",
        ("gcd", "int32"): "crash",
    }


def test_only_what_changed_between_two_versions(old: Run, new: Run) -> None:
    table = coverage([old, new]).changed()
    assert table.rows == ["put"]
    assert [entry.word for entry in table.entries.values()] == ["wrong", "fallback"]


def test_what_moved_comes_first_and_by_its_cost(tmp_path: Path) -> None:
    old = record(
        tmp_path / "old.jsonl",
        "2.11.0",
        line("runtime", "put:float32", "compiled", STRIDES),
        line("runtime", "put:int8", "compiled", STRIDES),
        line("runtime", "put:bool", "compiled"),
        line("runtime", "add:float32", "compiled"),
        line("runtime", "sort:float32", "fallback"),
        line("runtime", "only_old:float32", "fallback"),
    )
    new = record(
        tmp_path / "new.jsonl",
        "2.15.0",
        line("runtime", "put:float32", "compiled"),
        line("runtime", "put:int8", "compiled"),
        line("runtime", "put:bool", "compiled"),
        line("runtime", "add:float32", "refuses", ("crash", "OPS002", "plain: LoweringException")),
        line("runtime", "sort:float32", "compiled"),
    )
    ((_, _, found),) = coverage([old, new]).moved()
    assert [(move.kind, move.operator, move.dtypes, move.before, move.after) for move in found] == [
        ("broke", "add", ("float32",), "compiled", "refuses (transposed)"),
        ("mended", "put", ("float32", "int8"), "wrong (transposed)", "compiled"),
        ("falls back no more", "sort", ("float32",), "fallback", "compiled"),
    ]
    write([old, new], tmp_path / "moved.md", changed=True)
    text = (tmp_path / "moved.md").read_text()
    assert "## inductor 2.11.0 → 2.15.0, cpu" in text
    assert text.index("### Broke") < text.index("| `add` |") < text.index("### Mended") < text.index("| `put` |")
    write([old], tmp_path / "alone.md", changed=True)
    assert "No two versions" in (tmp_path / "alone.md").read_text()


def test_a_record_without_operators_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cells of operators"):
        coverage([record(tmp_path / "other.jsonl", "2.15.0")])


def test_the_three_documents(old: Run, new: Run, tmp_path: Path) -> None:
    for suffix in ("json", "md", "html"):
        write([old, new], tmp_path / f"ops.{suffix}")
    data = json.loads((tmp_path / "ops.json").read_text())
    assert data["operators"]["put"]["0"] == {
        "is": "wrong",
        "forms": ["transposed"],
        "findings": [f"decomposition: {STRIDES[2]}"],
    }
    text = (tmp_path / "ops.md").read_text()
    assert "| put | ✗ |" in text and "eager has (4, 1)" in text
    page = (tmp_path / "ops.html").read_text()
    assert "<script" in page and "put" in page and "https://" not in page
    with pytest.raises(UsageError, match=r"ops\.txt"):
        write([old, new], tmp_path / "ops.txt")


def test_registered_converters_that_took_no_part_are_listed(tmp_path: Path) -> None:
    left = line("codegen", "sort:float32", "fallback")
    left["observation"]["unbuilt"] = ["aten.sort.default"]
    run = record(tmp_path / "trt.jsonl", "2.14.0", left, line("codegen", "add:float32", "compiled"))
    write([run], tmp_path / "ops.md")
    assert "- `aten.sort.default`: sort (float32)" in (tmp_path / "ops.md").read_text()
    write([run], tmp_path / "ops.json")
    assert json.loads((tmp_path / "ops.json").read_text())["operators"]["sort"]["0"]["unbuilt"] == ["aten.sort.default"]


def test_the_check_of_a_dead_process_is_the_declared_one() -> None:
    assert words.OP_ENDED == measured.OP_ENDED
