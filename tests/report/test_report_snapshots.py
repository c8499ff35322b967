"""What people read, word for word, in `snapshots/`. `EXPECTTEST_ACCEPT=1 pytest …` writes it down again after a change
that was meant (expecttest itself writes no text beyond ASCII)."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance import trace
from conformance.report.commands import diff as diff_command
from conformance.report.diff import Diff, compare, sides
from conformance.report.document import Document, markdown
from conformance.report.history import trace as history_of
from conformance.report.load import Loaded, load
from conformance.report.matrix import combine
from conformance.report.matrix_document import matrix_blocks, upstream_blocks
from conformance.report.moved import diff_blocks, history_blocks
from conformance.report.upstream import reports
from tests.support.samples import cell, compile_of, finding, write_record

GRAPH = """def forward(self, x: "f32[8, 8]"):
    rsqrt: "f32[8, 8]" = torch.ops.aten.rsqrt.default(x);  x = None
    return (rsqrt,)
"""
OTHER = GRAPH.replace("rsqrt", "reciprocal")


def old_and_new() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One cause of each class, and cells that are not compared."""
    old = compile_of("norm.rms", "inductor", "cpu", decomposition={"ops": {"aten.rsqrt.default": 1}})
    new = compile_of("norm.rms", "inductor", "cpu", decomposition={"ops": {"aten.reciprocal.default": 1}})
    old[1]["texts"], new[1]["texts"] = {"graph": trace.digest(GRAPH)}, {"graph": trace.digest(OTHER)}
    for name in ("attention.sdpa", "attention.gqa"):
        old += compile_of(name, "inductor", "cpu", postgrad={"matches": {"attention": 1}}, fusion={"kernels": 1})
        new += compile_of(name, "inductor", "cpu", postgrad={"matches": {}}, fusion={"kernels": 4})
    old += compile_of("mlp.gated", "inductor", "cpu", fusion={"kernels": 1}, capture={"guards": {"A": 1}})
    new += compile_of("mlp.gated", "inductor", "cpu", fusion={"kernels": 2}, capture={"guards": {"B": 1}})
    old += compile_of("mlp.plain", "inductor", "cpu", fusion={"kernels": 3}, capture={"guards": {"A": 1}})
    new += compile_of("mlp.plain", "inductor", "cpu", fusion={"kernels": 2}, capture={"guards": {"B": 1}})
    old += compile_of("views.alias", "inductor", "cpu", capture={"guards": {"A": 1}})
    new += compile_of("views.alias", "inductor", "cpu", capture={"guards": {"B": 1}})
    old += [
        cell("runtime/inductor/cpu/edge.nan"),
        cell("runtime/inductor/cpu/edge.inf", "fail", findings=[finding("crash", "KeyError: 3")]),
    ]
    new += [
        cell(
            "runtime/inductor/cpu/edge.nan",
            "fail",
            reason="output 0 differs by 0.13",
            findings=[finding("wrong_result")],
        ),
        cell("runtime/inductor/cpu/edge.inf"),
        cell("cache/inductor/cpu/edge.new"),
    ]
    return old, new


SNAPSHOTS = Path(__file__).parent / "snapshots"


def expect(name: str, text: str) -> None:
    file = SNAPSHOTS / name
    if os.environ.get("EXPECTTEST_ACCEPT"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Loaded]:
    monkeypatch.chdir(tmp_path)
    texts = {"a": GRAPH, "b": OTHER}
    versions = zip(("2.11", "2.15"), old_and_new(), strict=True)
    return load(
        [write_record(Path(f"torch-{v}.jsonl"), lines, texts, torch=f"{v}.0", started=v) for v, lines in versions]
    )


@pytest.fixture
def diff(runs: list[Loaded]) -> Diff:
    before, after, _ = sides(*runs)
    return compare(before, after)


def printed(blocks: Any, width: int = 110) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(Document(list(blocks)))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_diff_in_the_terminal(diff: Diff) -> None:
    expect("diff.txt", printed(diff_blocks(diff), 160))


def test_the_first_screen_fits_a_small_terminal(diff: Diff) -> None:
    first = printed(diff_blocks(diff, height=24), 80).split("\nDetails\n")[0]
    assert len(first.splitlines()) <= 24 and max(map(len, first.splitlines())) <= 80
    expect("screen.txt", first)


@pytest.mark.parametrize("causes", [3, 30, 300])
def test_the_first_screen_is_one_screen_however_much_moved(tmp_path: Path, causes: int) -> None:
    lines = [
        [cell(f"fusion/inductor/cpu/f.m{k}", observation={"ops": {f"op{k}": n}}) for k in range(causes)] for n in (1, 2)
    ]
    runs = [load([write_record(tmp_path / f"{n}.jsonl", found)])[0] for n, found in enumerate(lines)]
    before, after, _ = sides(*runs)
    first = printed(diff_blocks(compare(before, after), height=30), 80).split("\nDetails\n")[0]
    assert len(first.splitlines()) <= 30
    assert (f"and {causes - first.count(' fusion ')} more causes" in first) == (causes > 25)


def test_diff_in_markdown(diff: Diff) -> None:
    expect("diff.md", markdown(diff_blocks(diff, everything=True)))


def test_brief_is_the_first_screen_only(runs: list[Loaded]) -> None:
    out = CliRunner().invoke(diff_command, ["--brief", *(str(run.path) for run in runs)]).output
    assert "Details" not in out and "matches.attention 1 → 0" in out


def test_history(runs: list[Loaded]) -> None:
    expect("history.txt", printed(history_blocks(history_of(combine(runs)), everything=True), 140))


def test_matrix_in_markdown(runs: list[Loaded]) -> None:
    expect("matrix.md", markdown(matrix_blocks(combine(runs))))


def test_upstream_reports_in_markdown(tmp_path: Path) -> None:
    runs = []
    for version, verdict in {"2.11.0": "xfail", "2.15.0": "pass"}.items():
        line = cell(
            "runtime/inductor/cpu/bugs.softmax", verdict, upstream=["pytorch#198094"], title="softmax of an empty row"
        )
        runs += load([write_record(tmp_path / f"{version}.jsonl", [line], torch=version)])
    expect("upstream.md", markdown(upstream_blocks(reports(combine(runs)))))
