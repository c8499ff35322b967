"""A finding becomes an expectation that the suite reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import expectations
from conformance.cell import Cell
from conformance.errors import UsageError
from conformance.triage.expect import add

CELL = Cell.parse("runtime/inductor/cpu/mutation.add_input")


def record(tmp_path: Path, verdict: str, *kinds: str) -> Path:
    path = tmp_path / "run.jsonl"
    findings = [{"kind": kind, "check": "LAD001", "detail": "input 0 is as it was"} for kind in kinds]
    line = {
        "cell": str(CELL),
        "verdict": verdict,
        "reason": 'input 0 is "as it was"',
        "findings": findings,
        "observation": {},
        "seconds": 1,
    }
    path.write_text(json.dumps({"schema": "conformance/1", "suite": "x", "env": {}}) + "\n" + json.dumps(line) + "\n")
    return path


def test_the_entry_covers_the_finding(tmp_path: Path) -> None:
    out = tmp_path / "expectations" / "inductor.toml"
    add(CELL, "https://example.org/1", None, "torch>=2.14,<2.15", None, record(tmp_path, "fail", "lost_mutation"), out)
    (entry,) = expectations.load(out.parent).entries
    assert (entry.cell, entry.kind, entry.url, entry.why) == (
        str(CELL),
        "lost_mutation",
        "https://example.org/1",
        'input 0 is "as it was"',
    )
    assert entry.holds({"torch": "2.14.1"}) and not entry.holds({"torch": "2.15.0"})


def test_one_entry_a_cell(tmp_path: Path) -> None:
    out = tmp_path / "expectations" / "inductor.toml"
    found = record(tmp_path, "fail", "lost_mutation")
    add(CELL, "https://example.org/1", None, "torch>=2.14", None, found, out)
    with pytest.raises(UsageError, match="has an entry for"):
        add(CELL, "https://example.org/2", None, "torch>=2.14", None, found, out)


@pytest.mark.parametrize(
    ("verdict", "kinds", "said"),
    [
        ("pass", (), "is pass: there is nothing to expect"),
        ("fail", ("lost_mutation", "wrong_result"), "findings of several kinds"),
    ],
)
def test_what_cannot_be_expected_is_said(tmp_path: Path, verdict: str, kinds: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        add(
            CELL,
            "https://example.org/1",
            None,
            "torch>=2.14",
            None,
            record(tmp_path, verdict, *kinds),
            tmp_path / "e.toml",
        )


def test_a_condition_that_is_none_is_not_written(tmp_path: Path) -> None:
    out = tmp_path / "expectations" / "inductor.toml"
    with pytest.raises(UsageError):
        add(
            Cell.parse("runtime/inductor/cpu/x.y"),
            None,
            None,
            "torch>=2.14",
            None,
            record(tmp_path, "fail", "lost_mutation"),
            out,
        )
