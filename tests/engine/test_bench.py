"""What `bench` compares: cells without their times, and the share of each stage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.commands import bench_record
from conformance.commands.bench_runs import _stages, differs, told
from conformance.errors import UsageError

ROWS = [("a ÷ b", 1.0, "≤ 2"), ("c ÷ d", 6.0, "≥ 6"), ("memory", 700.0, "")]


def test_times_do_not_count_and_facts_do() -> None:
    line = {"cell": "c", "verdict": "pass", "seconds": 1.0, "observation": {"kernels": 2, "seconds": 0.5}}
    slower = {"cell": "c", "verdict": "pass", "seconds": 9.0, "observation": {"kernels": 2, "seconds": 4.5}}
    other = {"cell": "c", "verdict": "pass", "seconds": 1.0, "observation": {"kernels": 3, "seconds": 0.5}}
    assert told(line) == told(slower)
    assert told(line) != told(other)
    assert told(line) != told(None)


def test_a_difference_is_named() -> None:
    line = {"cell": "c", "seconds": 1.0, "observation": {"kernels": 2, "seconds": 0.5}}
    assert differs(line, {"cell": "c", "seconds": 9.0, "observation": {"kernels": 3}}) == "observation.kernels 2 → 3"
    assert differs(None, line) == "one run has no such cell"


def test_shares_of_the_stages() -> None:
    lines = {"capture/inductor/cpu/a": {"seconds": 3.0}, "cache/inductor/cpu/a": {"seconds": 1.0}}
    shares = {what.split()[2]: value for what, value, _ in _stages(lines)}
    assert shares["capture"] == 0.75
    assert shares["cache"] == 0.25
    assert shares["fusion"] == 0.0


def recorded(file: Path, **changed: object) -> dict[str, object]:
    measured = bench_record.line(ROWS) | changed
    bench_record.append(file, measured)
    return measured


def test_a_ratio_is_compared_with_the_median_of_machines_of_its_kind(tmp_path: Path) -> None:
    file = tmp_path / "bench.jsonl"
    for value in (1.0, 1.2, 9.0):
        measured = recorded(file, ratios={"a ÷ b": value})
    recorded(file, cores=96, ratios={"a ÷ b": 0.1})
    assert bench_record.before(file, measured) == {"a ÷ b": 1.2}


def test_slower_is_more_of_what_should_be_small_and_less_of_what_should_be_large() -> None:
    known = {"a ÷ b": 0.4, "c ÷ d": 13.0, "memory": 1.0}
    assert bench_record.slower(ROWS, known, 2.0) == ["a ÷ b: 1.00, it was 0.40", "c ÷ d: 6.00, it was 13.00"]
    assert not bench_record.slower(ROWS, known, 3.0)
    assert not bench_record.slower(ROWS, {}, 1.0), "nothing was measured before"


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"cell": "x"}) + "\n")
    with pytest.raises(UsageError, match=r"line 1: not a line of"):
        bench_record.before(file, bench_record.line(ROWS))
