"""`conformance show CELL`: the graph, code, guards and counters of one cell, from a record or from a compile made now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax

from conformance.cell import Cell
from conformance.errors import UsageError, unknown

LANGUAGES = {"graph": "python", "program": "python", "kernel": "python", "code": "python"}


@click.command("show")
@click.argument("cell")
@click.option("--record", type=click.Path(path_type=Path), help="from this record (default: compile it now)")
@click.option("--only", metavar="TEXT", help="only the texts whose name contains this, e.g. 'kernel'")
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
def show(cell: str, record: Path | None, only: str | None, folder: str | None) -> int:
    """Graph, code, guards, counters of one cell."""
    address = Cell.parse(cell)
    line, texts = _from_record(address, record) if record else _now(address, folder)
    console = Console()
    colour = {"pass": "green", "fail": "red", "error": "red", "fallback": "yellow"}.get(line["verdict"], "dim")
    console.print(f"[bold]{escape(line['cell'])}[/]  [{colour}]{line['verdict']}[/]  {escape(line['reason'])}")
    for finding in line["findings"]:
        console.print(f"  [red]{finding['check']} {finding['kind']}[/]: {escape(finding['detail'])}")
    for name, value in line["observation"].items():
        console.print(f"  [dim]{escape(name)}[/] {escape(str(value))}", highlight=False)
    for name, text in texts.items():
        if only is None or only in name:
            console.rule(escape(name), align="left", style="dim")
            console.print(Syntax(text, _language(name, text), background_color="default", word_wrap=False))
    return 0


def _language(name: str, text: str) -> str:
    if 'extern "C"' in text and "async_compile" not in text:
        return "cpp"
    return LANGUAGES.get(name.split()[0], "text")


def _from_record(cell: Cell, path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    from conformance.record import read

    run = read(path)
    if str(cell) not in run.cells:
        raise unknown(f"cell of {path}", str(cell), run.cells)
    line = run.cells[str(cell)]
    return line, {name: run.text(key) or "(the text is not beside the record)" for name, key in line.get("texts", {}).items()}


def _now(cell: Cell, folder: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    from conformance import backends, environment, expectations, micrograph
    from conformance.baseline import Baseline
    from conformance.target import Target
    from conformance.workbench import Workbench

    library = micrograph.load(folder or micrograph.HOME)
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)
    target, backend = Target.parse(cell.target), backends.get(cell.backend)
    bench = Workbench(expectations.load(versions=environment.versions()), Baseline(environment.environment()))
    with Console(stderr=True).status("compiling"):
        results = bench.examine(library[cell.micrograph], backend, target, {cell.stage})
    if cell.stage not in results:
        raise UsageError(f"{cell} was not observed")
    result = results[cell.stage]
    return result.to_json(), result.observation.texts


COMMANDS = [show]
