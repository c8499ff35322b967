"""`conformance reverts`: candidates, prove, score, show."""

from __future__ import annotations

import hashlib
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
@click.option("--since", default="2026-02-01", show_default=True, metavar="DATE", help="of the first commit")
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


@reverts.command("score")
@CHECKOUT
@RECORD
@click.argument("survey", type=click.Path(path_type=Path, exists=True))
@click.option("-n", "--workers", type=click.IntRange(1), default=1, show_default=True, help="processes at a time")
@click.option(
    "--most", type=click.IntRange(1), default=60, show_default=True, metavar="N", help="micrographs for one bug"
)
@click.option("--half", type=click.Choice(["even", "odd"]), help="only bugs whose commit begins with such a digit")
@click.option("--again", is_flag=True, help="those that have a score, too")
@SEED
@LIMIT
@MINUTES
def score(
    checkout: Path,
    record: Path,
    survey: Path,
    workers: int,
    most: int,
    half: str | None,
    again: bool,
    seed: int,
    limit: int,
    minutes: float,
) -> int:
    """Run the micrographs that reach the lines of each proven bug, by a SURVEY (`conformance mutants survey`), with the bug."""
    from conformance.reverts import revert
    from conformance.reverts.scoring import Scorer

    bugs, scorer = Bugs(record), Scorer(survey, revert.state("scores"), workers, most)
    todo = [b for b in bugs if b.outcome == PROVEN and (again or not b.scored) and half in (None, b.half)]
    for bug in _some(todo, seed, limit, minutes):
        try:
            kept = bugs.keep(bug, **scorer.score(bug, checkout.resolve()))
        except UsageError as error:
            click.echo(f"{bug.commit[:10]} not scored: {error}"[:300])
            bugs.keep(bug, detail=str(error)[:300])
            continue
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
