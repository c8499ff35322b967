"""One mutant at a time is put in and the micrographs that reach it are examined, until one shows it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from conformance import environment, library
from conformance.baseline import Baseline
from conformance.errors import first_line
from conformance.expectations import Expectations
from conformance.fresh import FRESH
from conformance.judge import Judge
from conformance.line_store import LineStore
from conformance.measure import CaseServer
from conformance.micrograph import Micrograph
from conformance.mutants import operators, recompile, sources
from conformance.mutants.operators import Site
from conformance.mutants.survey import Surveyed, examined
from conformance.plan import THREADS
from conformance.processes import Job
from conformance.stage import Stage
from conformance.verdict import Kind

LIMIT = 240.0  # seconds for one mutant
MOST = 12  # micrographs that are asked for one mutant
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
    asked = [one for one in surveyed if one.right and one.seconds <= LONGEST]
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
    names = [one.micrograph for one in surveyed if one.right and one.seconds <= LONGEST]
    trials = (tuple(chance.sample(names, min(most, len(names)))) for _ in range(count))
    return [Trial(f"{NOTHING} {number}", "", "", some, len(some)) for number, some in enumerate(trials)]


# -------------------------------------------------------------------------------------------------- running


def run(trials: Sequence[Trial], surveyed: Sequence[Surveyed], backend: str, target: str, workers: int) -> Iterator[Answer]:
    """The answer to each trial as it is had."""
    cells = {one.micrograph: one.cells for one in surveyed}
    server = CaseServer()
    server.prepare([(backend, target)])
    at: dict[str, tuple[str, Stage]] = {}
    jobs = [
        Job(trial, _one, (trial, {name: cells[name] for name in trial.micrographs}, backend, target)) for trial in trials
    ]
    try:
        for event in server.run(jobs, workers, LIMIT):
            trial: Trial = event.job.key
            if isinstance(event.said, Answer):
                yield event.said
            elif isinstance(event.said, tuple):
                at[trial.mutant] = event.said
            elif event.death is not None:
                name, stage = at.get(trial.mutant, ("", Stage.CAPTURE))
                answer = _answer(trial)
                answer.found, answer.micrograph, answer.by = stage.value, name, "contract"
                answer.kind = (Kind.TIMEOUT if event.death.timeout else Kind.CRASH).value
                answer.detail = event.death.reason
                yield answer
    finally:
        server.close()


def _answer(trial: Trial) -> Answer:
    return Answer(trial.mutant, trial.seeded, trial.function, reached_by=trial.reached_by)


def _one(trial: Trial, cells: Mapping[str, Mapping[str, Any]], backend: str, target: str, say: Callable[[Any], None]) -> None:
    torch.set_num_threads(THREADS)
    answer, start = _answer(trial), time.monotonic()
    try:
        if trial.seeded:
            file, line, column, change = trial.mutant.rsplit(":", 3)
            recompile.put_in({file: operators.mutated(file, int(line), int(column), change)})
        micrographs = [library.find(name) for name in trial.micrographs]
        FRESH.prepare()  # with the mutant and the micrographs
        _ask(micrographs, cells, backend, target, answer, say)
    except Exception as error:
        answer.unavailable = first_line(error)
    answer.seconds = round(time.monotonic() - start, 1)
    say(answer)


def _ask(
    micrographs: Iterable[type[Micrograph]],
    cells: Mapping[str, Mapping[str, Any]],
    backend: str,
    target: str,
    answer: Answer,
    say: Callable[[Any], None],
) -> None:
    nothing_expected = Expectations([], {})
    for micrograph in micrographs:
        name = micrograph.name()
        trace = examined(micrograph, backend, target, lambda stage, name=name: say((name, stage)))  # type: ignore[misc]
        answer.asked += 1
        for by, judge in (
            ("contract", Judge(nothing_expected)),
            ("baseline", Judge(nothing_expected, _surveyed(cells[name]))),
        ):
            bad = next((result for result in judge.results(trace, micrograph).values() if result.unexpected), None)
            if bad is not None:
                answer.found, answer.by, answer.micrograph = bad.cell.stage.value, by, name
                answer.kind = bad.findings[0].kind.value if bad.findings else str(bad.verdict)
                answer.detail = bad.reason[:300]
                return


def _surveyed(cells: Mapping[str, Any]) -> Baseline:
    """The survey in the place of a recorded run of this version and machine."""
    env = environment.environment()
    known = Baseline(env, Path("no folder of records"))
    known.cells = {cell: [(dict(env), line)] for cell, line in cells.items()}
    return known
