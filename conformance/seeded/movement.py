"""Does `conformance diff` name a change of a compiler where it was made?

The same micrographs are recorded without a change and with each of several, in forked processes, and each record is
compared with the one without. Right is an answer with one cause, at the stage of the change; for a change that no stage
shows, an answer without a cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance import backends, environment, expectations, seeded
from conformance.errors import first_line
from conformance.fresh import FRESH
from conformance.judge import Judge
from conformance.library import load
from conformance.plan import THREADS
from conformance.processes import Job, Pool
from conformance.record_writer import Writer
from conformance.report.cause import Cause
from conformance.report.diff import compare, sides
from conformance.report.facts import BOOKKEEPING
from conformance.report.load import load as load_records
from conformance.seeded.changes import CHANGES, QUIET
from conformance.seeded.fault import Fault
from conformance.session import results_here
from conformance.stage import STAGES
from conformance.target import Target

UNCHANGED = "unchanged"
MICROGRAPHS = 2  # of a change
CI = ("guard_added", "pass_added", "no_cache_of_autograd")  # three stages, all seen on one micrograph
LIMIT = 600.0  # seconds for one change
Cells = list[tuple[dict[str, Any], dict[str, str]]]  # the lines of a record, each with its long texts


@dataclass(frozen=True)
class Answer:
    """What the diff said of one change. causes: those that are more than bookkeeping, the costliest first."""

    change: Fault
    causes: list[Cause] = field(default_factory=list)
    seconds: float = 0.0
    unavailable: str = ""

    @property
    def right(self) -> bool:
        if self.change.name in QUIET:
            return not self.causes
        return len(self.causes) == 1 and self.causes[0].stage in {stage.value for stage in self.change.stages}

    @property
    def wanted(self) -> str:
        return "nothing" if self.change.name in QUIET else " or ".join(stage.value for stage in self.change.stages)

    @property
    def named(self) -> str:
        return ", ".join(cause.stage for cause in self.causes) or "nothing"

    @property
    def text(self) -> str:
        return "; ".join(cause.headline for cause in self.causes)


def changes(faults: int | None = 1) -> list[Fault]:
    """The changes that break nothing, and with them so many faults of each stage of Inductor on the CPU (None: all)."""
    found: dict[str, list[Fault]] = {}
    for fault in seeded.all_faults().values():
        if (fault.backend, fault.target) == ("inductor", "cpu"):
            found.setdefault(fault.stage.value, []).append(fault)
    return [*CHANGES.values(), *(fault for stage in STAGES for fault in found[stage.value][:faults])]


def run(chosen: Iterable[Fault], folder: Path, workers: int = 1, micrographs: int = MICROGRAPHS) -> Iterator[Answer]:
    """Record so many micrographs of each change into `folder`, without and with the change; then answer for each."""
    asked = {one.name: one.micrographs[:micrographs] for one in chosen}
    todo: list[tuple[str, str]] = [
        (UNCHANGED, name) for name in dict.fromkeys(name for names in asked.values() for name in names)
    ]
    todo += [(change, name) for change, names in asked.items() for name in names]
    expected = expectations.load(versions=environment.versions())
    found: dict[str, dict[str, Cells]] = {name: {} for name, _ in todo}
    seconds = dict.fromkeys(found, 0.0)
    wrong: dict[str, str] = {}
    backends.get("inductor").preload(Target.parse("cpu"))
    library, judge = load(), Judge(expected)
    header = environment.header(["conformance", "selftest", "--moved"], expected.digest)
    jobs = [Job(key, _measure, (*key, library, judge)) for key in todo]
    last = {name: place for place, (name, _) in enumerate(todo)}
    done: set[tuple[str, str]] = set()
    for event in Pool(workers, LIMIT).run(jobs):
        name, micrograph = event.job.key
        if isinstance(event.said, str):
            wrong[name] = event.said
        elif event.said is not None:
            cells, took = event.said
            found[name][micrograph] = cells
            seconds[name] += took
        elif event.death is not None:
            wrong[name] = event.death.reason
        else:
            continue  # the job has ended, and said its answer before
        done.add((name, micrograph))
        if all(key in done for key in todo[: last[name] + 1] if key[0] in (name, UNCHANGED)):
            _write(folder / f"{name}.jsonl", found[name], header)
            if name != UNCHANGED:
                yield _answer(seeded.get(name), folder, seconds[name], wrong.get(name) or wrong.get(UNCHANGED, ""))


def _measure(name: str, micrograph: str, library: dict[str, Any], judge: Judge, say: Callable[[object], None]) -> None:
    """In a process of its own: the cells of one micrograph, with the change."""
    torch.set_num_threads(THREADS)
    start = time.monotonic()
    try:
        with nullcontext() if name == UNCHANGED else seeded.get(name):
            FRESH.close()  # fresh processes must have the change, too
            found = results_here(
                library[micrograph], backends.get("inductor"), Target.parse("cpu"), judge=judge
            ).values()
    except Exception as error:  # a change that cannot be made in this version
        say(first_line(error))
        return
    say(([(result.to_json(), result.observation.texts) for result in found], time.monotonic() - start))


def _write(path: Path, found: dict[str, Cells], header: dict[str, Any]) -> None:
    writer = Writer(path, header)
    try:
        for cells in found.values():
            for line, texts in cells:
                writer.add(line, texts)
    finally:
        writer.close()


def _answer(change: Fault, folder: Path, seconds: float, unavailable: str) -> Answer:
    if unavailable:
        return Answer(change, unavailable=unavailable)
    old, new = (load_records([folder / f"{name}.jsonl"])[0] for name in (UNCHANGED, change.name))
    before, after, _ = sides(old, new)
    found = compare(before, after)
    if not found.compared:
        return Answer(change, unavailable="no cell of the two records could be compared")
    return Answer(change, [cause for cause in found.causes if cause.rank != BOOKKEEPING], seconds)


def markdown(answers: Iterable[Answer]) -> str:
    """The answers as a table, and how many are right."""
    asked = [answer for answer in answers if not answer.unavailable]
    right = sum(answer.right for answer in asked)
    rows = [
        f"torch {environment.versions().get('torch', '')}: {right} of {len(asked)} answers are right: the change is the one "
        "cause and at the stage where it was made, or nothing is named where no stage shows it.",
        "",
        "| change | what the compiler does otherwise | made in | the diff names | class | what moved there | compiles |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for answer in asked:
        change, causes = answer.change, answer.causes
        ranks = ", ".join(cause.rank for cause in causes)
        count = ", ".join(f"{len(cause.compiles)} of {len(change.micrographs[:MICROGRAPHS])}" for cause in causes)
        named = answer.named + ("" if answer.right else " ✗")
        shown = f"`{answer.text[:160]}`".replace("|", "\\|") if answer.text else ""
        rows.append(f"| {change.name} | {change.what} | {answer.wanted} | {named} | {ranks} | {shown} | {count} |")
    return "\n".join(rows)
