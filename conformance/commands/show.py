"""`conformance show CELL`: the graph, code, guards and counters of one cell, from a record or from a compile made
now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.syntax import Syntax
from rich.text import Text

from conformance import sanitize
from conformance.cell import Cell, select
from conformance.errors import UsageError, unknown
from conformance.record import read
from conformance.report.document import console
from conformance.report.load import findings
from conformance.report.style import counted, look
from conformance.stage import Stage

if TYPE_CHECKING:  # torch takes seconds to import, and a record is shown without it
    from conformance.micrograph import Micrograph

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
    _print(line, {name: text for name, text in texts.items() if only is None or only in name})
    return 0


def _print(line: dict[str, Any], texts: dict[str, str]) -> None:
    out, seen = console(), look(sanitize.name(line["verdict"]))
    verdict = (f"{seen.sign} {seen.word}", seen.style)
    out.print(Text.assemble((sanitize.name(line["cell"]), "bold"), "  ", verdict, "  ", sanitize.line(line["reason"])))
    for kind, check, detail in findings(line):
        out.print(Text.assemble("  ", (f"{check} {kind}", "red"), ": ", detail))
    for name, value in line["observation"].items():
        out.print(Text.assemble("  ", (sanitize.name(name), "dim"), " ", sanitize.line(value, 20_000)))
    for name, text in texts.items():
        out.rule(Text(sanitize.name(name)), align="left", style="dim")
        out.print(Syntax(sanitize.text(text), _language(name, text), background_color="default", word_wrap=False))


def _across(cell: Cell, folder: str | None) -> int:
    """The kernels of the first target whole, of each other what is not the same; captured once wherever they agree."""
    from conformance import backends
    from conformance.headless.fidelity import difference, normalised
    from conformance.headless.multi_target import generate
    from conformance.target import DEVICES, Target

    if (cell.stage, cell.backend) != (Stage.CODEGEN, "inductor"):
        raise UsageError(
            f"{cell}: several targets are shown of codegen/inductor only, e.g. codegen/inductor/sm_*/{cell.micrograph}"
        )
    targets = [Target.parse(name) for name in select(DEVICES, cell.target, "target")]
    if reason := backends.get(cell.backend).unavailable(targets[0]).get(Stage.CODEGEN):
        raise UsageError(f"{targets[0]}: {reason}")
    out = console()
    with console(stderr=True).status("compiling"):
        made = generate(_micrograph(cell, folder), targets)
    whole = {name: normalised(source) for name, source in made[targets[0].name].kernels.items()}
    for target, generated in made.items():
        how = f"captured with {generated.shares}" if generated.shares else "captured on its own"
        apart = f", since it answers differently: {', '.join(generated.apart)}" if generated.apart else ""
        head = f"codegen/inductor/{target}/{cell.micrograph}"
        out.print(Text.assemble((head, "bold"), f"  {counted(len(generated.kernels), 'kernel')}, {how}{apart}"))
        for name in dict.fromkeys([*whole, *generated.kernels]):
            source = normalised(generated.kernels[name]) if name in generated.kernels else ""
            first = target == targets[0].name
            text = source if first else difference(whole.get(name, ""), source, targets[0].name, target)
            out.rule(Text(f"kernel {name}{'' if first or text else ': the same'}"), align="left", style="dim")
            if text:
                out.print(Syntax(text, "python" if first else "diff", background_color="default", word_wrap=False))
    return 0


def _micrograph(cell: Cell, folder: str | None) -> type[Micrograph]:
    from conformance.library import load

    library = load(folder)
    if cell.micrograph not in library:
        raise unknown("micrograph", cell.micrograph, library)
    return library[cell.micrograph]


def _language(name: str, text: str) -> str:
    if 'extern "C"' in text and "async_compile" not in text:
        return "cpp"
    return LANGUAGES.get(name.split()[0], "text")


def _from_record(cell: Cell, path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    run = read(path)
    if str(cell) not in run.cells:
        raise unknown(f"cell of {path}", str(cell), run.cells)
    line = run.cells[str(cell)]
    return line, {name: run.text(key) or "(the text is not beside the record)" for name, key in line["texts"].items()}


def _now(cell: Cell, folder: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    from conformance import backends, environment, expectations
    from conformance.baseline import Baseline
    from conformance.judge import Judge
    from conformance.session import results_here
    from conformance.target import Target

    chosen = _micrograph(cell, folder)
    target, backend = Target.parse(cell.target), backends.get(cell.backend)
    judge = Judge(expectations.load(versions=environment.versions()), Baseline(environment.environment()))
    with console(stderr=True).status("compiling"):
        results = results_here(chosen, backend, target, {cell.stage}, judge)
    if cell.stage not in results:
        raise UsageError(f"{cell} was not observed")
    result = results[cell.stage]
    return result.to_json(), result.observation.texts


COMMANDS = [show]
