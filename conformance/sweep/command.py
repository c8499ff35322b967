"""`conformance sweep`: versions × compilers × GPUs, on this machine or on a Ray cluster."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from conformance.errors import UsageError
from conformance.plan import cores
from conformance.sweep.estimate import Estimate
from conformance.sweep.options import FILE, options
from conformance.sweep.progress import duration
from conformance.sweep.spec import Environment, Sweep, Work, from_toml, torch_environments

INTERRUPTED = 130


@click.command("sweep")
@click.argument("file", required=False, type=FILE, metavar="[FILE.toml]")
@options
def sweep(file: Path | None, **given: Any) -> int:
    """Run the suite in many environments: a record each, then the matrix, the diffs of neighbours and the history."""
    asked = asked_for(file, given)
    console = Console(stderr=True)
    if given["dry_run"]:
        return _plan(asked, given)
    return carry_out(asked, given, console)


def asked_for(file: Path | None, given: dict[str, Any]) -> Sweep:
    """The sweep of a file, of flags, or of both: environments of flags come first."""
    work = _work(given)
    where = Environment(
        name="_",
        indexes=given["indexes"],
        index_url=given["index_url"],
        wheels=str(Path(given["wheels"]).absolute()) if given["wheels"] else "",
        pre=given["pre"] or any("nightly" in word for word in given["versions"]),
        trtllm_src=given["trtllm_src"],
    )
    found = [one for words in given["versions"] for one in torch_environments(words, work, given["beside"], where)]
    for text in given["pythons"]:
        name, _, path = text.partition("=")
        if not path:
            raise UsageError(f"--python takes NAME=PATH of a Python that exists; got {text!r}")
        found.append(
            Environment(name=name, interpreter=str(Path(path).absolute()), trtllm_src=given["trtllm_src"], work=work)
        )
    if file is not None:
        found += from_toml(file, work).environments
    return Sweep(environments=tuple(found)).checked()


def _work(given: dict[str, Any]) -> Work:
    same = {key: given[key] for key in Work.__struct_fields__ if key in given}
    for key in ("folder", "expectations"):
        same[key] = str(Path(given[key]).absolute()) if given[key] else ""
    return msgspec.convert({**same, "baseline": not given["no_baseline"]}, Work)


def _plan(asked: Sweep, given: dict[str, Any]) -> int:
    """What would be run, and how long that took before."""
    from conformance.report.document import Document, Paragraph, Table
    from conformance.report.document import console as output
    from conformance.report.style import counted
    from conformance.sweep.costs import recorded
    from conformance.sweep.estimate import at_once, estimate

    found = estimate(asked, recorded(given["output"]))
    slots = given["workers"] or cores()
    rows = [_planned(one) for one in found]
    table = Table(
        ("environment", "made of", "state", "cases", "cells", "on one slot"), rows, frozenset({3, 4, 5}), cut=1
    )
    where = f"Ray at {given['address']}" if given["address"] else counted(slots, "slot")
    total = f"{sum(one.cells for one in found):,} cells, about {duration(at_once(found, slots))} on {counted(slots, 'slot')}"
    new = sum(not one.made for one in found)
    made = f"; {counted(new, 'environment')} to be made meanwhile" if new else ""
    output().print(Document([table, Paragraph(f"{total}{made}; records go to {given['output']}, run on {where}")]))
    return 0


def _planned(one: Estimate) -> tuple[str, ...]:
    made = "there" if one.made else "to be made"
    return (
        one.environment.name,
        one.environment.made_of(),
        made,
        f"{one.cases:,}",
        f"{one.cells:,}",
        duration(one.seconds),
    )


def carry_out(asked: Sweep, given: dict[str, Any], console: Console) -> int:
    from conformance.revision import commit
    from conformance.sweep.costs import recorded
    from conformance.sweep.estimate import estimate
    from conformance.sweep.progress import SweepProgress
    from conformance.sweep.scheduler import Scheduler

    output: Path = given["output"]
    _writable(output)
    costs = recorded(output)
    expected = {one.environment.name: one.seconds for one in estimate(asked, costs)}
    executor = _executor(asked, given)
    progress = SweepProgress(console, executor.slots, expected)
    argv = ["conformance", *sys.argv[1:]]
    scheduler = Scheduler(
        asked, executor, output, costs.seconds, argv, commit(), given["resume"], progress.say, progress.tick
    )
    progress.columns = scheduler.columns
    try:
        with progress:
            scheduler.run()
        slots = executor.slots()
    except KeyboardInterrupt:
        click.echo("stopped; add --resume to go on", err=True)
        return INTERRUPTED
    finally:
        executor.close()
    return _tell(scheduler.columns, given, time.monotonic() - progress.started, slots)


def _executor(asked: Sweep, given: dict[str, Any]) -> Any:
    gpu = any("cuda" in one.work.targets for one in asked.environments)
    if given["address"]:
        from conformance.sweep.ray_cluster import RayExecutor

        return RayExecutor(given["address"], gpu, installed=given["installed"], per_node=given["slots_per_node"])
    from conformance.sweep.local import LocalExecutor

    return LocalExecutor(asked.environments, given["workers"], gpu)


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write records into {folder}: {error.strerror}") from None


def _tell(columns: Any, given: dict[str, Any], seconds: float, slots: int) -> int:
    from conformance.report.document import Document
    from conformance.report.document import console as output
    from conformance.report.style import counted
    from conformance.sweep.summary import end, summary_blocks

    ending = end(columns, given["output"], seconds, slots, given["allow_unavailable"])
    blocks = list(summary_blocks(ending))
    moved = next(
        (at for at, block in enumerate(blocks) if getattr(block, "text", "") == "What moved between neighbours"),
        len(blocks),
    )
    output().print(Document(blocks[: moved + 2]))
    click.echo(
        f"wrote {', '.join(path.name for path in ending.written if path.parent == ending.folder)} into {ending.folder}"
    )
    if ending.problems:
        click.echo(f"conformance: {counted(len(ending.problems), 'problem')}, named above", err=True)
    return ending.code(given["fail_on"])


COMMANDS = [sweep]
