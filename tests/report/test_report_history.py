"""Many records: with which version each cause came, which cells are flaky; and what upstream's reports do per
release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.errors import UsageError
from conformance.report.commands import history as history_command
from conformance.report.commands import matrix as matrix_command
from conformance.report.history import History, trace
from conformance.report.load import Loaded, load
from conformance.report.matrix import combine
from conformance.report.upstream import FAILS, Report, reports
from tests.support.samples import Write, cell, compile_of, finding

RunOf = Callable[..., Loaded]


def env(torch: str, machine: str = "x86_64") -> dict[str, Any]:
    return {"torch": torch, "machine": machine, "backends": {"inductor": {"torch": torch}}}


def arrivals(history: History) -> list[tuple[str, str, str, int]]:
    return [(one.new, one.cause.rank, one.cause.text, one.compiles) for one in history.arrivals()]


def test_each_cause_has_the_version_it_came_with(run_of: RunOf) -> None:
    runs = [
        run_of(
            f"{version}.jsonl",
            compile_of("a.b", "inductor", "cpu", {"runtime": verdict}, fusion={"kernels": kernels}),
            torch=version,
        )
        for version, kernels, verdict in (
            ("2.9.1", 1, "pass"),
            ("2.11.0", 1, "pass"),
            ("2.12.0", 2, "pass"),
            ("2.15.0", 2, "fail"),
        )
    ]
    assert arrivals(trace(combine(runs))) == [
        ("2.15.0", "wrong", "pass → fail", 1),
        ("2.12.0", "more", "kernels 1 → 2", 1),
    ]


def test_a_series_with_more_versions_says_it_more_exactly(run_of: RunOf) -> None:
    """Recorded on one machine for all versions, on another for the first and the last."""
    versions = {"x86_64": ("2.11.0", "2.12.0", "2.13.0"), "aarch64": ("2.11.0", "2.13.0")}
    runs = [
        run_of(
            f"{machine}{v}.jsonl",
            compile_of("a.b", "inductor", "cpu", postgrad={"matches": {"m": int(v == "2.11.0")}}),
            env=env(v, machine),
        )
        for machine, found in versions.items()
        for v in found
    ]
    history = trace(combine(runs))
    assert arrivals(history) == [("2.12.0", "lost", "matches.m 1 → 0", 2)]
    assert [column.machine for column in history.arrivals()[0].columns] == ["x86_64", "aarch64"]


def test_machines_are_never_one_series(run_of: RunOf) -> None:
    one = run_of("1.jsonl", compile_of("a.b", "inductor", "cpu", fusion={"kernels": 1}), env=env("2.11.0", "aarch64"))
    two = run_of("2.jsonl", compile_of("a.b", "inductor", "cpu", fusion={"kernels": 2}), env=env("2.12.0", "x86_64"))
    assert trace(combine([one, two])).steps == []


def test_flaky_is_apart_from_what_came_with_a_version(write: Write, tmp_path: Path) -> None:
    flaky, steady, broke = (
        "runtime/inductor/cpu/a.flaky",
        "runtime/inductor/cpu/a.steady",
        "runtime/inductor/cpu/a.broke",
    )
    runs = [
        ("2.11.0", "pass", "pass"),
        ("2.11.0", "fail", "pass"),
        ("2.15.0", "fail", "fail"),
        ("2.15.0", "fail", "fail"),
    ]
    for k, (torch, first, second) in enumerate(runs):
        write(
            f"records/{k}.jsonl",
            [cell(flaky, first), cell(steady), cell(broke, second)],
            torch=torch,
            started=f"2026-11-15T0{k}",
        )
    found = trace(combine(load(sorted((tmp_path / "records").glob("*.jsonl")))))
    assert ["/".join(key.place) for key in found.matrix.flaky] == [flaky]
    assert arrivals(found) == [("2.15.0", "wrong", "pass → fail", 1)]
    out = CliRunner().invoke(history_command, [str(tmp_path / "records")]).output
    assert "flaky: 1 cell\n" in out and "a.steady" not in out
    for suffix in ("html", "md", "json"):
        assert (
            CliRunner()
            .invoke(history_command, [str(tmp_path / "records"), "-o", str(tmp_path / f"h.{suffix}")])
            .exit_code
            == 0
        )
    data = json.loads((tmp_path / "h.json").read_text())
    assert data["flaky"] == [{"cell": flaky, "verdicts": ["pass", "fail"]}]
    assert [(one["since"], one["before"], one["class"]) for one in data["causes"]] == [("2.15.0", "2.11.0", "wrong")]


@pytest.mark.parametrize("change", [{"suite": "s2"}, {"expectations": "e2"}])
def test_another_suite_explains_a_change(run_of: RunOf, change: dict[str, Any]) -> None:
    one, two = (
        run_of("1.jsonl", [cell("runtime/inductor/cpu/a.b")]),
        run_of("2.jsonl", [cell("runtime/inductor/cpu/a.b", "fail")], **change),
    )
    assert not combine([one, two]).flaky


def test_a_folder_without_records_is_the_users_mistake(tmp_path: Path) -> None:
    result = CliRunner().invoke(history_command, [str(tmp_path)])
    assert isinstance(result.exception, UsageError) and "no records in" in str(result.exception)


# ---------------------------------------------------------------------------------------------- upstream


def reported(
    verdicts: dict[str, str], name: str = "bugs.one", upstream: tuple[str, ...] = ("pytorch#198094",)
) -> list[dict[str, Any]]:
    lines = compile_of(name, "inductor", "cpu", verdicts)
    for line in lines:
        line |= {"upstream": list(upstream), "title": "softmax of an empty row"}
        if line["verdict"] == "xfail":
            line["findings"] = [finding("wrong_result")]
    return lines


def states(report: Report) -> list[str]:
    return [sighting.state for sighting in report.sightings.values()]


BLOCKED = dict.fromkeys(("runtime", "cache"), "blocked")


@pytest.mark.parametrize(
    "verdicts, expected",
    [
        ([{"runtime": "xfail"}, {"runtime": "xfail"}, {}], ["alive", "alive", "fixed"]),
        ([{}, {"codegen": "error", **BLOCKED}, {}], ["passes", "alive", "fixed"]),
        ([{}, {}, {}], ["passes", "passes", "passes"]),  # never seen to fail
        (
            [{"runtime": "xfail"}, {"runtime": "unavailable"}, {"cache": "unsupported"}],
            ["alive", "not observable", "fixed"],
        ),
        ([{"runtime": "unavailable"}] * 3, ["not observable"] * 3),
    ],
)
def test_a_report_is_alive_fixed_or_not_observable_in_each_release(
    run_of: RunOf, verdicts: list[dict[str, str]], expected: list[str]
) -> None:
    runs = [run_of(f"2.{k}.jsonl", reported(found), torch=f"2.{k}.0") for k, found in enumerate(verdicts, 11)]
    (report,) = reports(combine(runs))
    assert states(report) == expected
    assert report.stage == next((stage for found in reversed(verdicts) for stage, v in found.items() if v in FAILS), "")
    assert (report.name, report.title, report.url) == (
        "pytorch#198094",
        "softmax of an empty row",
        "https://github.com/pytorch/pytorch/issues/198094",
    )


@pytest.mark.parametrize(
    "name, url",
    [
        ("pytorch#1", "https://github.com/pytorch/pytorch/issues/1"),
        ("TensorRT#2", "https://github.com/pytorch/TensorRT/issues/2"),
        ("NVIDIA/TensorRT-LLM#3", "https://github.com/NVIDIA/TensorRT-LLM/issues/3"),
        ("unknown#4", ""),
        ("javascript:alert(1)#5", ""),
        ("../x#6", ""),
    ],
)
def test_where_a_report_is(name: str, url: str) -> None:
    assert Report(name).url == url


def test_reports_in_markdown_and_json(write: Write, tmp_path: Path) -> None:
    for version, verdicts in (("2.11.0", {"runtime": "xfail"}), ("2.15.0", {})):
        write(f"records/{version}.jsonl", reported(verdicts), torch=version)
    for suffix in ("md", "json"):
        assert (
            CliRunner()
            .invoke(matrix_command, [str(tmp_path / "records"), "-o", str(tmp_path / f"m.{suffix}")])
            .exit_code
            == 0
        )
    text = (tmp_path / "m.md").read_text()
    assert "| report | what goes wrong | stage | inductor cpu 2.11.0 | inductor cpu 2.15.0 | repro |" in text
    assert "| runtime | ✗ alive | ✓ fixed | `conformance triage runtime/inductor/cpu/bugs.one` |" in text
    (report,) = json.loads((tmp_path / "m.json").read_text())["upstream"]
    assert (report["stage"], report["title"]) == ("runtime", "softmax of an empty row")
    assert [(one["column"], one["state"], one["verdict"]) for one in report["releases"]] == [
        ("inductor cpu 2.11.0", "alive", "xfail"),
        ("inductor cpu 2.15.0", "fixed", "pass"),
    ]
