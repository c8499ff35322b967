"""`conformance show CELL`: the graph, code, guards and counters of one cell, from a record or from a compile made now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax

from conformance import backends
from conformance.cell import Cell, select
from conformance.errors import UsageError, unknown
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.stage import Stage

LANGUAGES = {"graph": "python", "program": "python", "kernel": "python", "code": "python"}


@click.command("show")
@click.argument("cell")
@click.option("--record", type=click.Path(path_type=Path), help="from this record (default: compile it now)")
@click.option("--only", metavar="TEXT", help="only the texts whose name contains this, e.g. 'kernel'")
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
def show(cell: str, record: Path | None, only: str | None, folder: str | None) -> int:
    """Graph, code, guards, counters of one cell; with a glob for its target, what each described GPU's kernels are."""
    address = Cell.parse(cell)
    if any(c in address.target for c in "*?["):
        return _across(address, folder)
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


def _across(cell: Cell, folder: str | None) -> int:
    """The kernels of the first target whole, of each other what is not the same; captured once wherever they agree."""
    from conformance.headless.fidelity import difference, normalised
    from conformance.headless.multi_target import generate
    from conformance.target import DEVICES, Target

    if (cell.stage, cell.backend) != (Stage.CODEGEN, "inductor"):
        raise UsageError(f"{cell}: several targets are shown of codegen/inductor only, e.g. codegen/inductor/sm_*/{cell.micrograph}")
    targets = [Target.parse(name) for name in select(DEVICES, cell.target, "target")]
    if reason := backends.get(cell.backend).unavailable(targets[0]).get(Stage.CODEGEN):
        raise UsageError(f"{targets[0]}: {reason}")
    console = Console()
    with Console(stderr=True).status("compiling"):
        made = generate(_micrograph(cell, folder), targets)
    whole = {name: normalised(source) for name, source in made[targets[0].name].kernels.items()}
    for target, generated in made.items():
        how = f"captured with {generated.shares}" if generated.shares else "captured on its own"
        apart = f", since it answers differently: {', '.join(generated.apart)}" if generated.apart else ""
        console.print(f"[bold]codegen/inductor/{target}/{escape(cell.micrograph)}[/]  {len(generated.kernels)} kernels, {how}{apart}")
        for name in dict.fromkeys([*whole, *generated.kernels]):
            source = normalised(generated.kernels[name]) if name in generated.kernels else ""
            first = target == targets[0].name
            text = source if first else difference(whole.get(name, ""), source, targets[0].name, target)
            console.rule(escape(f"kernel {name}{'' if first or text else ': the same'}"), align="left", style="dim")
            if text:
                console.print(Syntax(text, "python" if first else "diff", background_color="default", word_wrap=False))
    return 0


def _micrograph(cell: Cell, folder: str | None) -> type[Micrograph]:
    library = load(folder)
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)
    return library[cell.micrograph]


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
    from conformance import environment, expectations
    from conformance.baseline import Baseline
    from conformance.judge import Judge
    from conformance.session import results_here
    from conformance.target import Target

    chosen = _micrograph(cell, folder)
    target, backend = Target.parse(cell.target), backends.get(cell.backend)
    judge = Judge(expectations.load(versions=environment.versions()), Baseline(environment.environment()))
    with Console(stderr=True).status("compiling"):
        results = results_here(chosen, backend, target, {cell.stage}, judge)
    if cell.stage not in results:
        raise UsageError(f"{cell} was not observed")
    result = results[cell.stage]
    return result.to_json(), result.observation.texts


COMMANDS = [show]
