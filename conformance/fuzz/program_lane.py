"""Draws programs of the grammars, has them played rung by rung, and makes findings of what differs from eager.

The session's process only draws and keeps account; programs are played by workers, in processes of their own. Programs that
share nothing are compiled together; what differs there is played alone. What is wrong is brought to the lowest rung that shows
it, made as plain as can be, confirmed in a fresh process and named by its cause.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import torch

from conformance import environment
from conformance.backends.base import Backend
from conformance.errors import first_line
from conformance.fresh import Died
from conformance.fuzz import one_library, program_tasks
from conformance.fuzz.causes import cause_of
from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import GRAMMARS
from conformance.fuzz.program import Program
from conformance.fuzz.program_finding import (
    ProgramFinding,
    ProgramFindings,
    exit_code,
    stage_and_culprit,
    write_script,
)
from conformance.fuzz.program_tasks import TOGETHER, Alarm, Played
from conformance.fuzz.rungs import Player, on
from conformance.fuzz.workers import Caller, Done, Workers, cores
from conformance.target import Target

DRAWN = 10  # programs a round
DRAWN_FOREIGN = 20  # the same for a backend that exports: what eager refuses is left out
COSTLY = 0.5  # of the time, at most, goes to the whole compiler
WAITING = 200  # programs that may wait for it
RAISING = 4  # of programs that eager refuses, which cannot share a compile, one in so many goes there
ALONE = 8  # of programs that must be compiled alone, one in so many goes to the C++ compiler
TRIAGE_SHARE = 0.2  # of the time, at most, goes to naming stages of what only the whole compiler shows
DIES_ANYWAY = 3  # in place of an exit code
LIMIT = 2.5  # times the patience for one play: what a task may take
OFTEN = 3  # a cause that was met so often is counted where its entry fits, and not looked into again


@dataclass
class Lane:
    seed: int
    minutes: float = 30.0
    grammars: Sequence[str] = tuple(GRAMMARS)
    patience: float = 180.0  # seconds for one play
    place: str = ""  # `torch_tensorrt/sm_90`: this backend alone, in place of the rungs of torch.compile
    workers: Workers = field(default_factory=lambda: Workers(max(cores(), 1)))
    tell: Callable[[str, str], None] = lambda name, what: None
    findings: ProgramFindings = field(default_factory=ProgramFindings)
    new: list[ProgramFinding] = field(default_factory=list)
    unconfirmed: list[ProgramFinding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # drawn, rejected, rounding …
    plays: Counter[str] = field(default_factory=Counter)  # by rung
    met: Counter[str] = field(default_factory=Counter)  # by cause

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.started = time.monotonic()
        self.drawn: Counter[tuple[str, str, str]] = Counter()
        self.spent: Counter[str] = Counter()  # seconds, by grammar and by kind of job
        self.yielded: Counter[str] = Counter()
        self.processes = 0  # of this session, that died
        self.reached: Counter[tuple[str, str]] = Counter()  # what of the compiler was seen, by stage
        self.corpus: dict[str, list[Program]] = {}
        self.waiting: list[Program] = []  # for the whole compiler, to share a compile
        self.single: list[Program] = []  # for the whole compiler, alone
        self.alarms: list[Alarm] = []
        self.untriaged: list[ProgramFinding] = []
        self.unplayed: list[tuple[list[Program], tuple[str, ...], bool]] = []  # what a process that died had left
        self.problems: list[str] = []

    # ------------------------------------------------------------------------------------- a session's process

    def prepare(self, backend: Backend, target: Target) -> None:
        """Import what compiles need and fork off the workers' servers, while nothing has been compiled."""
        logging.getLogger("torch").setLevel(logging.CRITICAL)  # what programs raise is compared, and need not be logged
        torch.set_num_threads(1)  # a process that has started OpenMP's threads cannot be forked any more
        backend.preload(target)
        try:
            if not self.place:
                one_library.warm()
        except Exception as error:  # each process then precompiles the headers for itself
            self.problems.append(f"programs: headers were not precompiled: {first_line(error)}")
        for name in self.grammars:
            GRAMMARS[name].plainest()  # reads the tables that are read when they are first asked for
        if self.place and target.name == "cpu":  # patterns that a compiler traces once are remembered in every process
            rules = GRAMMARS[self.grammars[0]]
            Player(self.patience).play(Program.of(rules, rules.plainest()), self.place)
        self.workers.prepare()

    @property
    def seconds(self) -> float:
        """That workers have worked."""
        return sum(self.spent.values())

    @property
    def compiler(self) -> str:
        return self.place.split("/")[0] or "inductor"

    def to_json(self) -> dict[str, Any]:
        return {
            "new": [finding.to_json() for finding in self.new],
            "counts": dict(self.counts),
            "met": dict(self.met),
            "spent": dict(self.spent),
            "plays": dict(self.plays),
            "processes": self.processes,
        }

    def go_on(self, said: dict[str, Any], started: float) -> None:
        """After the process of a session died: with what it had found, and with other draws."""
        self.started, self.processes = started, int(said["processes"]) + 1
        self.random = Random(f"{self.seed} {self.processes}")
        self.new = [ProgramFinding.from_json(data) for data in said["new"]]
        for name in ("counts", "met", "spent", "plays"):
            getattr(self, name).update(said[name])

    def step(self, timeout: float = 1.0) -> None:
        """Give every idle worker a job, and take what those have done that are ready."""
        while self.workers.idle:
            self._start_job()
        for done in self.workers.ended(timeout):
            self._take(done)

    # ------------------------------------------------------------------------------------------- jobs

    def _start_job(self) -> None:
        while self.alarms:
            alarm = self.alarms.pop(0)
            if not self._counted(alarm):
                self._look_into(alarm)
                return
        if self.unplayed:
            programs, rungs, shared = self.unplayed.pop(0)
            self._play("again", programs, rungs, shared)
        elif self.untriaged and self.spent["triage"] <= TRIAGE_SHARE * self.seconds:
            finding = self.untriaged.pop(0)
            self.tell(f"program.{finding.program.grammar}", "naming the stage")
            self.workers.start("triage", finding, partial(_triaged, finding.repro))
        elif self.spent["inductor"] <= COSTLY * self.seconds and (batch := self._batch()):
            self._play("inductor", batch, ("inductor",))
        else:
            self._search(self._grammar())

    def _batch(self) -> list[Program]:
        """Programs for the C++ compiler: those that share a compile and one that cannot, in turn."""
        size = TOGETHER["inductor"]
        if self.single and (len(self.waiting) < size or self.random.random() < 0.2):
            return [self.single.pop()]
        if len(self.waiting) < size:
            return []
        batch, self.waiting = self.waiting[:size], self.waiting[size:]
        return batch

    def _search(self, grammar: Grammar) -> None:
        programs = [self._draw(grammar) for _ in range(DRAWN_FOREIGN if self.place else DRAWN)]
        programs = [program for program in dict.fromkeys(programs) if not self._found_before(program)]
        rungs = (self.place,) if self.place else tuple(rung for rung in grammar.rungs if rung != "inductor")
        self._play(grammar.name, programs, rungs)

    def _play(self, kind: str, programs: list[Program], rungs: tuple[str, ...], shared: bool = True) -> None:
        self.tell(f"program.{programs[0].grammar}" if programs else kind, f"{rungs[-1]}, {len(programs)} programs")
        work = partial(_played, programs, rungs, self.patience, shared)
        self.workers.start(kind, (programs, rungs), work)

    def _look_into(self, alarm: Alarm) -> None:
        self.tell(f"program.{alarm.program.grammar}", "looking into an alarm")
        self.workers.start("alarm", alarm, partial(_looked_into, alarm, self.patience))

    def _confirm(self, finding: ProgramFinding) -> None:
        self.tell(f"program.{finding.program.grammar}", "confirming in a fresh process")
        if self.place:  # a script that needs the compiler alone would need its GPU
            alarm = Alarm(finding.program, finding.rung, finding.what, finding.detail)
            self.workers.start("confirm", finding, partial(_shows, alarm, self.patience))
            return
        finding.repro = str(write_script(finding))
        self.workers.start("confirm", finding, partial(_exit_code, finding.repro, 3 * self.patience))

    # ------------------------------------------------------------------------------------------- answers

    def _take(self, done: Done) -> None:
        self.spent[done.kind] += done.seconds  # type: ignore[assignment]
        if done.kind == "alarm":
            self._looked(done)
        elif done.kind == "confirm":
            self._confirmed(done.about, done)
        elif done.kind == "triage":
            self._triaged(done.about, done)
        elif isinstance(done.value, Played):
            self._took(done.value, done.about[1])
        elif isinstance(done.error, Died):
            self._died(*done.about)
        elif done.error is not None:
            self.problems.append(f"programs: {first_line(done.error)}")

    def _took(self, played: Played, rungs: tuple[str, ...]) -> None:
        self.counts.update(played.counts)
        self.plays.update(played.plays)
        self.alarms += [alarm for alarm in played.alarms if not self._declined(alarm)]
        for program, things in played.reached:
            if any(not self.reached[thing] for thing in things):
                self._keep(program)
            self.reached.update(things)
        if played.left:
            self.unplayed.append((played.left, rungs, False))
        if "inductor" not in rungs and not self.place:
            self._sort_out(played)

    def _sort_out(self, played: Played) -> None:
        """Which of the programs that cheap rungs found nothing in go to the whole compiler, and how? Where eager raises
        and no graph came of it, the C++ compiler sees nothing of it."""
        for program, whole in played.silent.items():
            if "inductor" not in program.rules.rungs:
                continue
            if whole and not program.rules.alone and program not in played.refused:
                self.waiting.append(program)
            elif self.random.randrange(RAISING if program in played.refused else ALONE) == 0:
                self.single.append(program)
        self.random.shuffle(self.waiting)
        del self.waiting[WAITING:], self.single[:-WAITING]

    def _died(self, programs: list[Program], rungs: tuple[str, ...]) -> None:
        """A process died while it played these: each half in a process of its own; a single one is a finding."""
        self.counts["processes that died"] += 1
        if len(programs) > 1:
            half = len(programs) // 2
            self.unplayed += [(programs[:half], rungs, True), (programs[half:], rungs, True)]
            return
        for program in programs:
            finding = self._finding(Alarm(program, rungs[-1], "raises", "the process died"))
            if not self._known(finding):
                self._confirm(finding)

    def _looked(self, done: Done) -> None:
        if isinstance(done.error, Died):
            self._died([done.about.program], (done.about.rung,))
            return
        if done.error is not None:
            self.problems.append(f"programs: {first_line(done.error)}")
            return
        small, why = done.value
        if small is None:
            self.counts[why] += 1
            return
        finding = self._finding(small)
        if not self._known(finding):
            self._confirm(finding)

    def _confirmed(self, finding: ProgramFinding, done: Done) -> None:
        """Its script must exit 1 in a fresh process; a process that dies of it confirms it, too. One that takes too long
        does not: the machine may be busy."""
        code = done.value
        if isinstance(done.error, Died):
            code = 0 if done.error.death.timeout else 1
            finding.notes.append(f"a fresh process ended: {done.error}")
        finding.confirmed = code == 1
        if any(found.cause_text == finding.cause_text for found in self.new):
            return  # another worker was quicker
        if code == DIES_ANYWAY:
            self.problems.append(f"programs: the plainest program of {finding.program.grammar} ends the process, too")
        if not finding.confirmed:
            finding.notes.append(f"its script exits {code} in a fresh process")
            _remove(finding.repro)
            self.unconfirmed.append(finding)
            return
        self.yielded[finding.program.grammar] += 1
        self.new.append(finding)
        self.findings.add(finding)
        if finding.rung == "inductor":
            self.untriaged.append(finding)

    def _triaged(self, finding: ProgramFinding, done: Done) -> None:
        if done.error is not None:  # triage's own trouble is no reason to lose the finding
            finding.notes.append(f"triage gave no answer: {first_line(done.error)}"[:200])
            return
        stage, finding.culprit = done.value
        finding.stage = stage or finding.stage
        write_script(finding)

    # ------------------------------------------------------------------------------------------- drawing

    def _grammar(self) -> Grammar:
        """Each has its turn; then those are preferred that gave more causes for the time they took."""
        fresh = [name for name in self.grammars if not self.drawn[name, "", ""]]
        weights = [(1.0 + self.yielded[name]) / (20.0 + self.spent[name]) for name in self.grammars]
        name = fresh[0] if fresh else self.random.choices(list(self.grammars), weights)[0]
        self.drawn[name, "", ""] += 1
        return GRAMMARS[name]

    def _draw(self, grammar: Grammar) -> Program:
        """Entries that were drawn seldom are preferred; one in four is the neighbour of a program that reached
        something new in the compiler."""
        kept = self.corpus.get(grammar.name)
        if kept and self.random.random() < 0.25:
            choices = grammar.neighbours(dict(self.random.choice(kept).choices), self.random)
        else:
            choices = grammar.draw(self.random, lambda slot, key: (1 + self.drawn[grammar.name, slot, key]) ** -2.0)
        for slot, key in choices.items():
            self.drawn[grammar.name, slot, key] += 1
        self.counts["drawn"] += 1
        return Program.of(grammar, choices)

    def _keep(self, program: Program) -> None:
        kept = self.corpus.setdefault(program.grammar, [])
        kept.append(program)
        del kept[:-50]

    def _found_before(self, program: Program) -> bool:
        """Does it hold all of a program that was found? A few times it is played again, then it is left out."""
        left_out = any(found.met >= OFTEN and _holds(program, found.program) for found in self.new)
        self.counts["left out"] += left_out
        return left_out

    # ------------------------------------------------------------------------------------------ causes

    def _finding(self, alarm: Alarm) -> ProgramFinding:
        stage = on(alarm.rung).stage.value
        cause = cause_of(alarm.program, stage, alarm.what, alarm.detail, self.compiler)
        return ProgramFinding(
            cause.name,
            cause.report,
            stage,
            alarm.what,
            alarm.detail,
            alarm.program,
            alarm.rung,
            environment.versions(),
            seconds=round(time.monotonic() - self.started, 1),
            notes=list(alarm.notes),
        )

    def _known(self, finding: ProgramFinding) -> bool:
        """Has this cause been found? Then it is counted."""
        self.met[finding.cause_text] += 1
        for found in self.new:
            if found.cause_text == finding.cause_text:
                found.met += 1
                return True
        return any(found.cause_text == finding.cause_text for found in self.unconfirmed)

    def _declined(self, alarm: Alarm) -> bool:
        self.counts["declined"] += alarm.declined
        return alarm.declined

    def _counted(self, alarm: Alarm) -> bool:
        """Does a program that was found, or a listed cause that was met often, explain this one?"""
        listed = cause_of(alarm.program, on(alarm.rung).stage.value, alarm.what, alarm.detail, self.compiler)
        for found in self.new:
            same = found.program.grammar == alarm.program.grammar and found.what == alarm.what
            often = found.met >= OFTEN and found.cause_text == str(listed)
            if often or (same and _holds(alarm.program, found.program)):
                found.met += 1
                self.met[found.cause_text] += 1
                return True
        return False


def _holds(program: Program, small: Program) -> bool:
    """Does the program hold all that makes the small one what it is?"""
    if program.grammar != small.grammar:
        return False
    chosen = dict(small.choices)
    odd = {(slot, chosen[slot]) for slot in small.rules.odd(chosen, small.rules.slots)}
    return bool(odd) and odd <= {*program.choices}


# --------------------------------------------------------------------------------------- what a worker does for a job


def _played(programs: list[Program], rungs: tuple[str, ...], patience: float, shared: bool, fresh: Caller) -> Played:
    return fresh.call(program_tasks.play_all, programs, rungs, patience, shared, limit=LIMIT * patience)  # type: ignore[no-any-return]


def _looked_into(alarm: Alarm, patience: float, fresh: Caller) -> tuple[Alarm | None, str]:
    return fresh.call(program_tasks.look_into, alarm, patience, limit=LIMIT * patience)  # type: ignore[no-any-return]


def _exit_code(file: str, limit: float, fresh: Caller) -> int:
    return fresh.call(exit_code, file, _cache(), limit=limit)  # type: ignore[no-any-return]


def _shows(alarm: Alarm, patience: float, fresh: Caller) -> int:
    """1 where the program differs in a fresh process, too, or kills it. Where the plainest program of its grammar dies as well, nothing
    can be compiled here, and the program is not to blame."""
    try:
        return int(fresh.call(program_tasks.shows, alarm, patience, limit=LIMIT * patience))
    except Died as died:
        if died.death.timeout:
            raise
        rules = alarm.program.rules
        plain = replace(alarm, program=Program.of(rules, rules.plainest()))
        try:
            fresh.call(program_tasks.shows, plain, patience, limit=LIMIT * patience)
        except Died:
            return DIES_ANYWAY
        raise died from None


def _triaged(file: str, fresh: Caller) -> tuple[str, str]:
    return fresh.call(stage_and_culprit, file, limit=240.0)  # type: ignore[no-any-return]


def _cache() -> str:
    """The session's folder for what the compiler keeps: it was empty at the session's start."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")


def _remove(file: str) -> None:
    if os.path.exists(file):
        os.unlink(file)
