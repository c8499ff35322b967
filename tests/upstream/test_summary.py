"""The summary: failures by stage and by cause, and what is new against an older record."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from conformance.upstream import summary


def line(
    test: str, verdict: str, stage: str = "fusion", first: str = "", fails_from: str = "", **observation: Any
) -> tuple[str, dict[str, Any]]:
    cell = f"{stage}/inductor/cpu/upstream:t/test_x.py::{test}"
    findings = [{"kind": "crash", "check": "UPSTREAM", "detail": first}] if first else []
    facts = {**observation, **({"fails_from": fails_from} if fails_from else {})}
    return cell, {
        "cell": cell,
        "verdict": verdict,
        "reason": first,
        "findings": findings,
        "observation": facts,
        "seconds": 0.1,
    }


NEW = dict(
    [
        line("(collection)", "pass"),
        line("test_a", "pass"),
        line("test_b", "fail", first="E: one", fails_from="decomposition"),
        line("test_c", "fail", first="E: one", fails_from="decomposition"),
        line("test_d", "fail", first="E: one", fails_from="codegen"),
        line("test_i", "fail", "codegen", first="E: one", fails_from="decomposition"),
        line("test_j", "xpass"),
        line("test_e", "error", "codegen", first="killed by SIGSEGV", cause="crash"),
        line("test_f", "unavailable", cause="private_name", name="torch._x.y"),
        line("test_g", "pass", "codegen"),
        line("test_g", "unavailable", "runtime", after="codegen"),
    ]
)
OLD = dict(
    [
        line("test_a", "fail"),
        line("test_b", "pass"),
        line("test_c", "fail"),
        line("test_d", "pass", "postgrad"),
        line("test_f", "pass"),
        line("test_g", "pass", "codegen"),
        line("test_h", "pass"),
        line("test_j", "xfail"),
        ("fusion/inductor/cpu/upstream:t/test_not_asked_for.py::test_k", {"verdict": "pass"}),
    ]
)


def test_one_first_line_at_one_rung_is_one_cause() -> None:
    found = summary.summarize(NEW)
    assert [(cause.stages, cause.fails_from, len(cause.tests)) for cause in found.causes] == [
        (("fusion", "codegen"), "decomposition", 3),
        (("codegen",), "crash", 1),
        (("fusion",), "codegen", 1),
        (("fusion",), "xpass", 1),
    ]
    assert (found.tests, found.ran, found.unexpected) == (9, 8, 6)
    assert found.moved_names == {"torch._x.y": 1}


def test_every_test_is_sorted_against_an_older_record() -> None:
    compared = summary.against(NEW, OLD)
    assert {kind: [test[-1] for test in tests] for kind, tests in compared.tests.items()} == {
        "new": ["b", "d", "e", "i"],
        "fixed": ["a", "j"],
        "still": ["c"],
        "moved": ["f"],
        "removed": [],
        "gone": ["h"],
        "same": ["g"],
    }
    assert compared.causes == {"unknown": 3, "crash": 1}
    assert compared.by_stage["fusion"] == {"new": 2, "fixed": 2, "still": 1, "moved": 1, "gone": 1}
    assert compared.by_stage["codegen"] == {"new": 2, "same": 1}


def test_tests_of_a_file_that_no_longer_imports_are_told_apart() -> None:
    new = dict([line("(collection)", "unavailable", cause="private_name", name="torch._x.y")])
    compared = summary.against(new, OLD)
    assert [len(compared.tests[kind]) for kind in ("moved", "gone", "new")] == [5, 0, 0]
    new = dict([line("(collection)", "fail", cause="public_name", name="torch.x")])
    compared = summary.against(new, OLD)
    assert [len(compared.tests[kind]) for kind in ("removed", "gone", "new")] == [5, 0, 0]
    assert summary.summarize(new).unexpected == 1, "a file that cannot be imported makes the run fail"


def test_a_test_that_asks_for_a_public_name_that_is_gone() -> None:
    new = dict(
        [line("test_b", "fail", cause="public_name", name="torch.x"), line("test_c", "fail", cause="public_name")]
    )
    tests = summary.against(new, OLD).tests
    assert [test[-1] for test in tests["removed"]] == ["b"] and [test[-1] for test in tests["still"]] == ["c"]


def test_what_a_person_reads() -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    summary.show(summary.summarize(NEW), summary.against(NEW, OLD), console)
    text = console.export_text()
    assert "9 tests, 8 run" in text
    assert "4 causes of 6 failures" in text
    assert "torch._x.y ×1" in text
    assert "new: t/test_x.py::test_b" in text
    assert "1 × the process died" in text
