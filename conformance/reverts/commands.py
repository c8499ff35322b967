"""`conformance reverts`: candidates, prove, score, show."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from conformance.errors import UsageError
from conformance.reverts.bug import CANDIDATE, PROVEN, Bug, Bugs, header, publish

RECORD = click.argument("record", type=click.Path(path_type=Path))
CHECKOUT = click.argument("checkout", type=click.Path(path_type=Path, exists=True))
SEED = click.option("--seed", type=int, default=0, show_default=True, help="of the order")
LIMIT = click.option(
    "--limit", type=click.IntRange(0), default=0, metavar="N", help="stop after so many (default: all)"
)
MINUTES = click.option(
    "--minutes", type=float, default=0.0, metavar="N", help="begin none after so long (default: no end)"
)


@click.group("reverts")
def reverts() -> None:
    """Real fixes of PyTorch taken out of the installed torch: does the library show the bug?"""


@reverts.command("candidates")
@CHECKOUT
@RECORD
@click.option("--since", default="2026-02-01", show_default=True, metavar="DATE")
def candidates(checkout: Path, record: Path, since: str) -> int:
    """The fixes of CHECKOUT's history (a git repository, bare or not) into RECORD."""
    from conformance.reverts import history

    bugs = Bugs(
        record,
        header(["conformance", *sys.argv[1:3]], since=since, head=history.git(checkout, "rev-parse", "HEAD").strip()),
    )
    known = {bug.commit for bug in bugs}
    for bug in history.fixes(checkout, since):
        if bug.commit not in known:
            bugs.keep(bug)
    for (outcome, reason), number in Counter(
        (b.outcome, b.reason if b.outcome == "left out" else "") for b in bugs
    ).most_common():
        click.echo(f"{number:6} {outcome} {reason}".rstrip())
    return 0


@reverts.command("prove")
@CHECKOUT
@RECORD
@SEED
@LIMIT
@MINUTES
@click.option(
    "--timeout", type=float, default=180.0, show_default=True, metavar="SECONDS", help="for the tests of a fix"
)
def prove(checkout: Path, record: Path, seed: int, limit: int, minutes: float, timeout: float) -> int:
    """Take candidates out of the installed torch, in random order, and run the tests of each fix without and with it."""
    from conformance.reverts.proof import Prover

    bugs, prover = Bugs(record), Prover(checkout.resolve(), timeout)
    for bug in _some([bug for bug in bugs if bug.outcome == CANDIDATE], seed, limit, minutes):
        kept = bugs.keep(bug, **prover.prove(bug))
        click.echo(f"{kept.commit[:10]} {kept.outcome}: {kept.reason} ({kept.seconds:.0f} s)"[:200])
    return 0


@reverts.command("choose")
@RECORD
@click.argument("survey", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE", help="JSON: commit → micrographs"
)
def choose(record: Path, survey: Path, output: Path) -> int:
    """For each proven bug the micrographs that reach its lines, by a SURVEY (`conformance mutants survey`)."""
    from conformance.mutants.reach import blocks
    from conformance.mutants.survey import Survey
    from conformance.reverts import choice
    from conformance.reverts.scoring import PLACE

    surveyed = Survey(survey).all(*PLACE)
    chosen = {
        bug.commit: choice.choose(bug.changed, blocks(), surveyed) for bug in Bugs(record) if bug.outcome == PROVEN
    }
    output.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    click.echo(
        f"{len(chosen)} bugs, {sum(not names for names in chosen.values())} that nothing reaches, {len(surveyed)} micrographs"
    )
    return 0


@reverts.command("score")
@CHECKOUT
@RECORD
@click.option(
    "--micrographs",
    "chosen",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="JSON: commit → micrographs to run",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="the records of the runs (default: your cache folder)",
)
@click.option("-n", "--workers", type=click.IntRange(1), default=1, show_default=True, help="processes at a time")
@click.option("--half", type=click.Choice(["even", "odd"]), help="only bugs whose commit begins with such a digit")
@click.option("--again", is_flag=True, help="those that have a score, too")
@SEED
@LIMIT
@MINUTES
def score(
    checkout: Path,
    record: Path,
    chosen: Path | None,
    runs: Path | None,
    workers: int,
    half: str | None,
    again: bool,
    seed: int,
    limit: int,
    minutes: float,
) -> int:
    """Run micrographs without and with each proven bug, and compare. Without --micrographs: the core, for every bug."""
    from conformance import core
    from conformance.reverts import revert
    from conformance.reverts.scoring import Scorer

    names = json.loads(chosen.read_text(encoding="utf-8")) if chosen else None
    bugs, scorer = Bugs(record), Scorer(runs or revert.state("runs"), workers)
    todo = [b for b in bugs if b.outcome == PROVEN and (again or not b.scored) and half in (None, b.half)]
    if names is not None:
        todo = [bug for bug in todo if bug.commit in names]
    for bug in _some(todo, seed, limit, minutes):
        if names is not None and not names[bug.commit]:
            bugs.keep(bug, scored=True, detail="no micrograph reaches its files")
            continue
        try:
            found = scorer.score(
                bug, checkout.resolve(), names[bug.commit] if names is not None else sorted(core.names())
            )
        except UsageError as error:
            click.echo(f"{bug.commit[:10]} not scored: {error}"[:300])
            bugs.keep(bug, detail=str(error)[:300])
            continue
        kept = bugs.keep(bug, **found)
        word = f"{kept.stage} {kept.kind} ({kept.right}) {kept.micrograph}" if kept.shown else "not shown"
        click.echo(f"{kept.commit[:10]} {word}; {kept.ran} micrographs, {len(kept.moved)} moved, {kept.seconds:.0f} s")
    return 0


@reverts.command("show")
@RECORD
@click.option("--missed", is_flag=True, help="list what the library does not show, of the half that may be read")
@click.option(
    "--publish", "published", type=click.Path(path_type=Path), metavar="FILE", help="write the last line of each commit"
)
def show(record: Path, missed: bool, published: Path | None) -> int:
    """The record in numbers."""
    from conformance.reverts import summary

    if published:
        publish(record, published)

    click.echo("\n".join(summary.lines(Bugs(record), missed)))
    return 0


def _some(bugs: list[Bug], seed: int, limit: int, minutes: float) -> Iterator[Bug]:
    """In an order that depends on the seed and on each bug alone."""
    end = time.monotonic() + 60 * minutes
    ordered = sorted(bugs, key=lambda bug: hashlib.sha256(f"{seed} {bug.commit}".encode()).digest())
    for bug in ordered[: limit or None]:
        if minutes and time.monotonic() > end:
            return
        yield bug


COMMANDS = [reverts]
