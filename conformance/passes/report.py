"""What an examination says, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.passes.compare import Change, label
from conformance.passes.examination import Examination, Price
from conformance.passes.form import shown
from conformance.passes.versions import History

STYLES = {"+": "green", "-": "red", "|": "yellow"}


def show(console: Console, made: Examination, hook: str, diff: bool = True) -> None:
    """One examination."""
    head = f"{made.name} on {made.micrograph}, {made.target}, torch {made.torch}, {hook}"
    console.print(Text(head, style="bold"))
    if made.skipped:
        console.print(Text(f"  not examined: {made.skipped}"))
        return
    _lines(console, "matches", [", ".join(f"{name} {count}" for name, count in made.matches.items()) or "0"])
    _lines(console, "cost", [_price(made.without, made.cost)] if made.total and made.cost else [])
    _lines(console, "built", ["yes"] if made.built else [])
    _lines(console, "variants", [_variant(name, made) for name in made.variants])
    _lines(
        console,
        "neighbours",
        [f"{n.name}: {n.total}" + (" (still right)" if n.total and not n.findings else "") for n in made.neighbours],
    )
    for finding in made.all_findings():
        style = "red" if finding.serious else ""
        console.print(Text(f"  {'finding' if finding.serious else 'note':<11}{finding}", style=style))
    _why(console, made)
    if diff and made.total:
        _diff(console, made)


def _lines(console: Console, title: str, lines: Sequence[str]) -> None:
    for index, line in enumerate(lines):
        console.print(Text(f"  {'' if index else title:<11}{line}"))


def _variant(name: str, made: Examination) -> str:
    one = made.variants[name]
    if one.skipped:
        return f"{name}: {one.skipped}"
    said = ", ".join(f"{pattern} {count}" for pattern, count in one.matches.items())
    return f"{name}: {said}{f'; {one.why}' if one.why else ''}"


def _price(without: Price | None, with_it: Price | None) -> str:
    if without is None or with_it is None:
        return "not known"
    said = []
    for name in ("kernels", "bytes", "temporaries"):
        old, new = getattr(without, name), getattr(with_it, name)
        said.append(f"{name} {'?' if old is None else old} → {'?' if new is None else new}")
    return ", ".join(said)


def _why(console: Console, made: Examination) -> None:
    for miss in made.misses:
        console.print(Text(f"  {'nearest':<11}{miss}"))
    if made.loss is not None:
        console.print(Text(f"  {'taken by':<11}{made.loss}", style="yellow"))
        for miss in made.loss.misses:
            if miss.first is not None:
                console.print(Text(f"  {'':<11}after it, {miss}"))
    elif made.misses and made.rungs:
        console.print(Text(f"  {'stages':<11}no earlier graph of this compile matches either"))


def _diff(console: Console, made: Examination) -> None:
    replaced = {name for _, nodes in made.nodes for name in nodes}
    for line in made.diff():
        name = line[1:].split(":")[0].split(" ")[0]
        mark = "  ← replaced" if line[:1] == "-" and name in replaced else ""
        console.print(Text(f"    {line}{mark}", style=STYLES.get(line[:1], "")))


def table(console: Console, examined: Sequence[Examination]) -> None:
    """Micrographs × patterns."""
    patterns = list(dict.fromkeys(name for made in examined for name in made.matches))
    drawn = Table(box=None, pad_edge=False)
    for title in ("micrograph", *patterns, "findings"):
        drawn.add_column(title)
    for made in examined:
        row = ["·" if made.skipped else str(made.matches.get(name, "")) for name in patterns]
        drawn.add_row(made.micrograph, *row, ", ".join(dict.fromkeys(f.kind for f in made.serious())))
    console.print(drawn)


def show_history(console: Console, history: History) -> None:
    """Versions × micrographs, and every change."""
    drawn = Table(box=None, pad_edge=False, title=history.name, title_justify="left")
    for title in ("micrograph", *history.versions):
        drawn.add_column(title)
    for name in history.micrographs():
        patterns = history.patterns(name)
        for pattern in patterns if len(patterns) > 1 else [""]:  # "": all of them
            counts = [history.count(version, name, pattern) for version in history.versions]
            drawn.add_row(f"{name}, {pattern}" if pattern else name, *counts)
    console.print(drawn)
    for version, why in history.failed.items():
        console.print(Text(f"torch {version}: {why}", style="red"))
    for made in history.changes():
        show_change(console, made)


def show_change(console: Console, made: Change) -> None:
    for line in change_lines(made):
        console.print(Text(line, style=STYLES["|"] if " | " in line else ""))


def change_lines(made: Change) -> list[str]:
    """A change, a line each."""
    said = ["", made.title(), f"  first at     {made.stage or 'no graph'}: {made.step}"]
    said += [f"  difference   {each}" for each in made.differences[:2]]
    said += [f"  {made.why}"] if made.why else []
    said += [f"    {line}" for line in made.lines]
    if made.derived:
        said += [f"  a pattern that matches both ({label(made.old, made.new)}, {label(made.new, made.old)}):"]
        said += [f"    {line}" for line in made.derived.splitlines()]
    return said


def rungs_lines(made: Examination) -> list[str]:
    """The pass on the graph of every step."""
    return [
        f"{rung.total:>3}  {rung.label}{f' {shown(tuple(rung.patterns))}' if rung.patterns else ''}"
        for rung in made.rungs
    ]
