"""What `bench` compares: cells without their times, and the share of each stage."""

from __future__ import annotations

from conformance.commands.bench_runs import _stages, differs, told


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
