"""One mutant at a time is put in and the micrographs that reach it are examined, until one shows it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from conformance import environment, json_line, library
from conformance.baseline import Baseline
from conformance.checks.measured import BASELINE
from conformance.errors import first_line
from conformance.expectations import Expectations
from conformance.fresh import FRESH
from conformance.judge import Judge
from conformance.line_store import LineStore
from conformance.measure import CaseServer
from conformance.mutants import operators, recompile, sources
from conformance.mutants.operators import Site
from conformance.mutants.survey import Surveyed, examined
from conformance.plan import THREADS
from conformance.processes import Job, Pool
from conformance.stage import Stage
from conformance.verdict import Kind

LIMIT = 900.0  # seconds for one mutant
LONGEST = 12.0  # seconds of a micrograph that is asked
NOTHING = "nothing"  # the mutant that changes nothing: what is found then is a false alarm


@dataclass
class Answer:
    """What the suite said of one mutant."""

    mutant: str
    seeded: str  # the stage whose file was changed
    function: str = ""
    found: str = ""  # the stage of the first finding; empty: no micrograph showed it
    kind: str = ""
    by: str = ""  # "contract", or "baseline": what moved since the survey
    micrograph: str = ""
    detail: str = ""
    asked: int = 0  # micrographs that were examined
    reached_by: int = 0  # micrographs that reach what was changed
    seconds: float = 0.0
    unavailable: str = ""

    @property
    def detected(self) -> bool:
        return bool(self.found)

    @property
    def ended(self) -> bool:
        """The compiler could not go on: it raised, died or did not end. The suite would have to be blind not to see that."""
        return self.kind in (Kind.CRASH.value, Kind.TIMEOUT.value)

    def right_stage(self) -> bool:
        return self.found == self.seeded

    def near_stage(self) -> bool:
        return self.detected and Stage(self.found) in sources.NEIGHBOURS[Stage(self.seeded)]


class Answers(LineStore[Answer]):
    def __init__(self, path: Path | None) -> None:
        super().__init__(path, Answer, lambda answer: answer.mutant)


@dataclass(frozen=True)
class Trial:
    """A mutant and the micrographs that are asked, in this order."""

    mutant: str
    seeded: str
    function: str
    micrographs: tuple[str, ...]
    reached_by: int


# ------------------------------------------------------------------------------------------------- choosing


def drawn(surveyed: Sequence[Surveyed], count: int, seed: int, only: Callable[[Site], bool], most: int) -> list[Trial]:
    """`count` mutants at random, equally many of each stage, of those that some micrograph reaches."""
    chance = random.Random(seed)
    asked = [one for one in surveyed if one.seconds <= LONGEST]
    reach: dict[int, list[Surveyed]] = {}
    for one in asked:
        for number in one.reached:
            reach.setdefault(number, []).append(one)
    pools: dict[str, list[Site]] = {}
    for site in operators.sites():
        if site.needs in reach and only(site):
            pools.setdefault(site.stage.value, []).append(site)
    trials = []
    for pool in pools.values():
        chance.shuffle(pool)
        wanted = -(-count // len(pools))
        for site in pool:
            if not wanted:
                break
            if trial := _trial(site, reach, most, chance):
                trials.append(trial)
                wanted -= 1
    chance.shuffle(trials)
    return trials[:count]


def _trial(site: Site, reach: Mapping[int, list[Surveyed]], most: int, chance: random.Random) -> Trial | None:
    """Micrographs that reach the site and, where the change is a condition that always holds now, come by where it did not."""
    reaching = reach[site.needs]
    if site.spares is not None:
        reaching = [one for one in reaching if site.spares not in one.reached]
    if not reaching:
        return None
    return Trial(site.name, site.stage.value, site.function, tuple(_spread(reaching, most, chance)), len(reaching))


def _spread(reaching: Iterable[Surveyed], most: int, chance: random.Random) -> list[str]:
    """Quick ones of many families: first one of each family, then the second ones."""
    families: dict[str, list[Surveyed]] = {}
    for one in sorted(reaching, key=lambda one: one.seconds * chance.uniform(0.7, 1.4)):
        families.setdefault(one.micrograph.rpartition(".")[0], []).append(one)
    turns = ((turn, one.seconds, one.micrograph) for family in families.values() for turn, one in enumerate(family))
    return [name for _, _, name in sorted(turns)[:most]]


def controls(surveyed: Sequence[Surveyed], count: int, seed: int, most: int) -> list[Trial]:
    """Trials in which nothing is changed."""
    chance = random.Random(seed)
    names = [one.micrograph for one in surveyed if one.seconds <= LONGEST]
    trials = (tuple(chance.sample(names, min(most, len(names)))) for _ in range(count))
    return [Trial(f"{NOTHING} {number}", "", "", some, len(some)) for number, some in enumerate(trials)]


# -------------------------------------------------------------------------------------------------- running


def run(
    trials: Sequence[Trial], surveyed: Sequence[Surveyed], backend: str, target: str, workers: int
) -> Iterator[Answer]:
    """The answer to each trial as it is had."""
    server = CaseServer()
    server.prepare([(backend, target)])
    server.call(_remember, {one.micrograph: json.dumps(one.cells) for one in surveyed})
    jobs = [Job(trial, _one, (trial, backend, target)) for trial in trials]
    try:
        for event in server.run(jobs, workers, LIMIT):
            if event.said is not None:
                yield event.said
            elif event.death is not None:
                answer = _answer(event.job.key)
                answer.unavailable = event.death.reason
                yield answer
    finally:
        server.close()


def _answer(trial: Trial) -> Answer:
    return Answer(trial.mutant, trial.seeded, trial.function, reached_by=trial.reached_by)


_cells: dict[str, str] = {}  # by micrograph: what the survey saw, as JSON (text costs the garbage collector nothing)


def _remember(cells: dict[str, str]) -> None:
    _cells.update(cells)


def _one(trial: Trial, backend: str, target: str, say: Callable[[Any], None]) -> None:
    """Put the mutant in; each micrograph is then examined in a process of its own, which has compiled nothing."""
    torch.set_num_threads(THREADS)
    answer, start = _answer(trial), time.monotonic()
    try:
        if trial.seeded:
            recompile.put_in(operators.by_name(trial.mutant))
        for name in trial.micrographs:
            answer.asked += 1
            if found := _examined_alone(name, backend, target):
                answer.micrograph = name
                answer.found, answer.kind, answer.by, answer.detail = found
                break
    except Exception as error:
        answer.unavailable = first_line(error)
    answer.seconds = round(time.monotonic() - start, 1)
    say(answer)


Found = tuple[str, str, str, str]  # stage, kind, by, detail


def _examined_alone(name: str, backend: str, target: str) -> Found | None:
    stage, found = Stage.CAPTURE, None
    for event in Pool(1, LONGEST * 10).run([Job(name, _shows, (name, backend, target))]):
        if isinstance(event.said, Stage):
            stage = event.said
        elif event.said is not None:
            found = event.said
        elif event.death is not None:
            kind = Kind.TIMEOUT if event.death.timeout else Kind.CRASH
            found = (stage.value, kind.value, "contract", event.death.reason)
    return found or None


def _shows(name: str, backend: str, target: str, say: Callable[[Any], None]) -> None:
    """The first cell of which anything else is found than in the survey; "" if there is none."""
    torch.set_num_threads(THREADS)
    micrograph = library.find(name)
    FRESH.prepare()
    trace = examined(micrograph, backend, target, say)
    before = json.loads(_cells[name])
    nothing_expected = Expectations([], {})
    for result in Judge(nothing_expected).results(trace, micrograph).values():
        now = json_line.plain(result.to_json())
        if _outcome(now) != _outcome(before[str(result.cell)]):
            kind = result.findings[0].kind.value if result.findings else str(result.verdict)
            say((result.cell.stage.value, kind, "contract", result.reason[:300]))
            return
    for result in Judge(nothing_expected, _surveyed(before)).results(trace, micrograph).values():
        if any(finding.check == BASELINE for finding in result.findings):
            say((result.cell.stage.value, result.findings[0].kind.value, "baseline", result.reason[:300]))
            return
    say("")


def _outcome(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an expectation sees of a cell."""
    return cell["verdict"], sorted({finding["kind"] for finding in cell["findings"]})


def _surveyed(cells: Mapping[str, Any]) -> Baseline:
    """The survey in the place of a recorded run of this version and machine."""
    env = environment.environment()
    known = Baseline(env, Path("no folder of records"))
    known.cells = {cell: [(dict(env), line)] for cell, line in cells.items()}
    return known
