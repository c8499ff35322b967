"""`conformance candidates`, `conformance get`, and what `conformance pass NAME` shows of AutoDeploy's own passes."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from conformance.errors import UsageError

SOURCE = click.option("--trtllm-src", metavar="DIR", help="a TensorRT-LLM checkout (or TRTLLM_SRC)")


def _use(source: str | None) -> None:
    from conformance.backends.autodeploy.loader import VARIABLE

    if source:
        os.environ[VARIABLE] = source


# ------------------------------------------------------------------------------------------------------ pass


def show_transform(
    name: str, micrograph: str, kernels: str, legacy: bool, review: bool, as_json: bool, trtllm_src: str | None
) -> int:
    """The graph before and after one of AutoDeploy's own passes, by its name (`conformance pass NAME`)."""
    _use(trtllm_src)
    if review:
        return _review(name, as_json)
    from conformance.autodeploy.harness import Harness

    harness = Harness()
    report = harness.run_legacy(name, micrograph) if legacy else harness.run(name, micrograph, kernels)
    if as_json:
        click.echo(json.dumps(_report(report), indent=2))
    else:
        _show(report, harness.loaded.found)
    return 1 if report.lost_metadata or report.wrong_metadata or report.failures else 0


def _report(report: Any) -> dict[str, Any]:
    from conformance.backends.autodeploy.graph import listing

    return {
        "pass": report.name,
        "micrograph": report.micrograph,
        "kernels": report.option,
        "path": report.path,
        "matches": report.matches,
        "passes": {result.name: result.fact() for result in report.results},
        "added": report.added,
        "removed": report.removed,
        "without_metadata": report.lost_metadata,
        "wrong_metadata": report.wrong_metadata,
        "before": listing(report.before),
        "after": listing(report.after),
    }


def _show(report: Any, found: Any) -> None:
    from conformance.backends.autodeploy.graph import listing

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"[bold]{report.name}[/] on {report.micrograph}, {report.option} kernels, {report.path} path of {found}"
    )
    for result in report.results:
        said = f"matches={result.matches}" if result.state == "ran" else f"{result.state} {result.reason}".strip()
        console.print(f"  {result.name}: {said}")
    if not report.results:
        console.print(f"  matches={report.matches}")
    before, after = listing(report.before), listing(report.after)
    console.print()
    if before == after:
        console.print("the graph is the same before and after:\n")
        console.print(Text(before))
    else:
        _diff(console, before, after)
    console.print("ops added:   " + _counts(report.added))
    console.print("ops removed: " + _counts(report.removed))
    for name in report.lost_metadata:
        console.print(f"[red]without shape and dtype:[/] {name}")
    for wrong in report.wrong_metadata:
        console.print(f"[red]wrong metadata:[/] {wrong}")


def _diff(console: Console, before: str, after: str) -> None:
    styles = {"+": "green", "-": "red"}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=len(before))
    for line in list(lines)[3:]:  # after the names of the files and the line numbers
        console.print(Text(line, style=styles.get(line[:1], "")))
    console.print()


def _counts(ops: dict[str, int]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in ops.items()) or "none"


def _review(name: str, as_json: bool) -> int:
    from conformance.autodeploy.checklist import review
    from conformance.backends.autodeploy.loader import find

    items = review(name, find().root)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(item) for item in items], indent=2))
    else:
        for item in items:
            click.echo(str(item))
    return 0 if all(item.done for item in items) else 1


# ------------------------------------------------------------------------------------------------ candidates


@click.command("candidates")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.option("--top", metavar="N", type=int, default=0, help="only the best N")
@SOURCE
def candidates_command(folder: Path, as_json: bool, top: int, trtllm_src: str | None) -> int:
    """Fusion candidates in a folder of graph dumps (AD_DUMP_GRAPHS_DIR), best first, with the kernels that exist."""
    from conformance.autodeploy import candidates, dumps
    from conformance.backends.autodeploy.loader import Missing, find

    _use(trtllm_src)
    read = dumps.read_folder(folder)
    root: Path | None
    try:
        root = find().root
    except Missing:
        if trtllm_src:
            raise
        root = None
    found = candidates.find(read, root)
    found = found[:top] if top else found
    for broken in read.broken:
        click.echo(f"left out {broken}", err=True)
    if as_json:
        body = {
            "dump": read.last.file.name,
            "left_out": read.broken,
            "candidates": [dataclasses.asdict(c) for c in found],
        }
        click.echo(json.dumps(body, indent=2))
        return 0
    click.echo(f"{len(found)} candidates in {read.last.file.name}, the last of {len(read.dumps)} graphs\n")
    for candidate in found:
        click.echo(candidate.text())
    return 0


# ------------------------------------------------------------------------------------------------------- get


@click.command("get")
@click.argument("what")
@click.option("--ref", default="HEAD", show_default=True, help="a branch, a tag or a commit")
@click.option("--from", "origin", metavar="URL", help="where from (default: the public TensorRT-LLM repository)")
def get_command(what: str, ref: str, origin: str | None) -> int:
    """Fetch AutoDeploy's Python files into a cache: `conformance get autodeploy`."""
    from conformance.autodeploy.clone import ORIGIN, get

    if what != "autodeploy":
        raise UsageError(f"cannot get {what!r}: only `conformance get autodeploy` is known")
    found = get(ref, origin or ORIGIN)
    click.echo(f"{found} at {found.root}; it is used when TRTLLM_SRC is not set and nothing is installed")
    return 0


COMMANDS = [candidates_command, get_command]
