"""The list of the core, made from records: `python -m conformance.report.core RECORD…`; or added to by what reaches more of the compiler's
source: `python -m conformance.report.core --reach SURVEY --add SECONDS`.

Plain graphs are all in it. Of the neighbours, as many as fit into the time, chosen by how much that no chosen one has a second of theirs
brings: a family, a report, a report alive in a release, a kind of finding at a stage of a family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import click

from conformance import core, paths, record
from conformance.cell import Cell
from conformance.micrograph import Micrograph
from conformance.mutants.survey import Survey, Surveyed

NEIGHBOURS = ("upstream.", "surface.")  # families of neighbours: one of a kind is enough
SECONDS = 2000.0  # of processor time that Inductor on the CPU took for them, as recorded; a run takes less, on two cores about a third
UNKNOWN = 3.0  # seconds that a micrograph takes which was never recorded
CALL = 0.2  # seconds that one more micrograph takes at least: a fork, and its lines


def _zeros() -> dict[str, float]:
    return defaultdict(float)


@dataclass
class Recorded:
    """What records of Inductor on the CPU say of a micrograph."""

    seconds: dict[str, float] = field(default_factory=_zeros)  # by record
    alive: set[str] = field(default_factory=set)  # versions in which something is wrong
    findings: set[tuple[str, str]] = field(default_factory=set)  # stage and kind

    @property
    def cost(self) -> float:
        return CALL + (mean(self.seconds.values()) if self.seconds else UNKNOWN)


def recorded(files: Iterable[Path]) -> dict[str, Recorded]:
    found: dict[str, Recorded] = defaultdict(Recorded)
    for file in files:
        run = record.read(file)
        version = run.header["env"]["torch"]
        for name, line in run.cells.items():
            cell = Cell.parse(name)
            if (cell.backend, cell.target) != ("inductor", "cpu"):
                continue
            seen = found[cell.micrograph]
            seen.seconds[str(file)] += line["seconds"]
            seen.findings |= {(cell.stage.value, finding["kind"]) for finding in line["findings"]}
            if line["findings"]:
                seen.alive.add(version)
    return found


def chosen(
    library: Mapping[str, type[Micrograph]], seen: Mapping[str, Recorded], seconds: float, keep: Collection[str] = ()
) -> list[str]:
    """The names of the core, in order. Where some are kept, the seconds are for what comes to them, of what was seen."""
    known = {name: seen.get(name, Recorded()) for name in library}
    plain = [name for name in library if not name.startswith(NEIGHBOURS)]
    others = [name for name, cls in library.items() if cls.backends and "inductor" not in cls.backends]
    names = set(plain) | set(others) | set(keep)
    spent = 0.0 if keep else sum(known[name].cost for name in plain)
    asked = [name for name in library if name not in names and (not keep or name in seen)]
    traits = {name: _traits(name, library[name], known[name]) for name in asked}
    has: set[tuple[str, ...]] = set().union(*(_traits(name, library[name], known[name]) for name in keep))
    while traits:
        best = max(traits, key=lambda name: (len(traits[name] - has) / known[name].cost, name))
        spent += known[best].cost
        if not traits[best] - has or spent > seconds:
            break
        names.add(best)
        has |= traits.pop(best)
    return sorted(names)


def _traits(name: str, cls: type[Micrograph], seen: Recorded) -> set[tuple[str, ...]]:
    """What choosing it would add."""
    family = name.rpartition(".")[0]
    found: set[tuple[str, ...]] = {(family,), *((family, stage, kind) for stage, kind in seen.findings)}
    for report in map(str, cls.upstream):
        found |= {(report,), *((report, version) for version in seen.alive)}
    return found


LEAST = 4  # blocks of the compiler's source that a micrograph must bring


def reaching(surveyed: Collection[Surveyed], keep: Collection[str], seconds: float) -> dict[str, float]:
    """Of the micrographs that are right, those that reach most of the compiler's source that none of `keep` reaches, a second of theirs;
    with what each takes."""
    has: set[int] = set().union(*(one.reached for one in surveyed if one.micrograph in keep))
    asked = {one.micrograph: one for one in surveyed if one.micrograph not in keep and one.right}
    brings = {name: one.reached - has for name, one in asked.items()}
    names: dict[str, float] = {}
    while brings:
        best = max(brings, key=lambda name: (len(brings[name]) / (CALL + asked[name].seconds), name))
        gain, cost = brings.pop(best), CALL + asked[best].seconds
        if len(gain) >= LEAST:
            if sum(names.values()) + cost > seconds:
                break
            names[best] = cost
            brings = {name: blocks - gain for name, blocks in brings.items()}
        brings = {name: blocks for name, blocks in brings.items() if len(blocks) >= LEAST}
    return names


@click.command()
@click.argument("records", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--seconds", default=SECONDS, help="processor time that the core may take, Inductor on the CPU")
@click.option(
    "--add",
    type=float,
    help="keep what the core holds now, and add of what was recorded as much as fits into so many seconds",
)
@click.option(
    "--reach",
    type=click.Path(exists=True, path_type=Path),
    help="a file of `conformance mutants survey`: with --add, and instead of records, add what reaches most of the compiler's source",
)
def main(records: tuple[Path, ...], seconds: float, add: float | None, reach: Path | None) -> None:
    """Write fixtures/core.txt anew."""
    from conformance import library

    if bool(records) == bool(reach) or (reach and add is None):
        raise click.UsageError(
            "name records; or a survey with --reach FILE, and the seconds that it may add with --add"
        )
    known = library.load()
    seen = recorded(records)
    before = {} if add is None else {name: cost for name, cost in core.seconds().items() if name in known}
    if reach:
        surveyed = [one for one in Survey(reach).all("inductor", "cpu") if one.micrograph in known]
        before |= reaching(surveyed, before, add or 0.0)
        names = sorted(before)
    else:
        names = chosen(known, seen, seconds if add is None else add, before)
    head = f"{core.COMMENT} Made by `python -m conformance.report.core`; do not edit by hand.\n"
    costs = {name: before.get(name, seen.get(name, Recorded()).cost) for name in names}
    paths.core().write_text(head + "".join(f"{name} {cost:.1f}\n" for name, cost in costs.items()))
    click.echo(
        f"{len(names)} of {len(known)} micrographs, {sum(costs.values()):.0f} s of processor time; wrote {paths.core()}"
    )


if __name__ == "__main__":
    main()
