"""Draws programs of the grammars, plays them rung by rung, and looks into what differs from eager.

Programs that share nothing are compiled together; what differs there is played alone. What is wrong is brought to the
lowest rung that shows it, made as plain as can be, confirmed in a fresh process and named by its cause.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch

from conformance import environment
from conformance.backends.base import Backend
from conformance.fresh import FRESH, Died
from conformance.fuzz.causes import cause_of
from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import GRAMMARS
from conformance.fuzz.observed import difference
from conformance.fuzz.program import Program
from conformance.fuzz.program_finding import (
    ProgramFinding,
    ProgramFindings,
    exit_code,
    stage_and_culprit,
    write_script,
)
from conformance.fuzz.reach import Reach
from conformance.fuzz.rungs import ORDER, RUNGS, Busy, Outcome, Player, processor_seconds
from conformance.target import Target

DRAWN = 10  # programs a round
TOGETHER = {"decompositions": 5, "inductor": 10}  # programs in one compile
COSTLY = 0.5  # of the time, at most, goes to the whole compiler
WAITING = 200  # programs that may wait for it
RAISING = 4  # of programs that eager refuses, which cannot share a compile, one in so many goes there
ALONE = 8  # of programs that must be compiled alone, one in so many goes to the C++ compiler
SHRINKING = 40.0  # seconds that one alarm may compute to become smaller
LOW = ("float16", "bfloat16", "half()")
ROUNDING = {"emulate_precision_casts": True}  # compiled code rounds where eager does
DECLINED = re.compile(r"does not (currently )?support|not (yet |currently )?supported|Unsupported|NotImplementedError")
TRIAGE_SHARE = 0.25  # of the time, at most, goes to naming stages of what only the whole compiler shows


@dataclass
class Alarm:
    """A program that differs from eager on a rung."""

    program: Program
    rung: str
    what: str
    detail: str


@dataclass
class Lane:
    seed: int
    minutes: float = 30.0
    grammars: Sequence[str] = tuple(GRAMMARS)
    player: Player = field(default_factory=Player)
    tell: Callable[[str, str], None] = lambda name, what: None
    journal: Callable[[Program], None] = lambda program: None
    findings: ProgramFindings = field(default_factory=ProgramFindings)
    new: list[ProgramFinding] = field(default_factory=list)
    unconfirmed: list[ProgramFinding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # drawn, rejected, rounding, met by cause …
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.started = time.monotonic()
        self.drawn: Counter[tuple[str, str, str]] = Counter()
        self.spent: Counter[str] = Counter()
        self.yielded: Counter[str] = Counter()
        self.triage = 0.0
        self.processes = 0  # of this session, that died
        self.reach = Reach()
        self.corpus: dict[str, list[Program]] = {}
        self.wants: dict[Program, Outcome] = {}
        self.waiting: list[tuple[Program, Outcome]] = []  # for the whole compiler
        self.costly = 0.0  # seconds that it took

    # ------------------------------------------------------------------------------------- a session's process

    def prepare(self, backend: Backend, target: Target) -> None:
        """Import what compiles need and fork off the server of fresh processes, while nothing has been compiled."""
        logging.getLogger("torch").setLevel(logging.CRITICAL)  # what programs raise is compared, and need not be logged
        torch.set_num_threads(1)  # a process that has started OpenMP's threads cannot be forked any more
        backend.preload(target)
        FRESH.prepare()

    @property
    def seconds(self) -> float:
        return sum(self.spent.values()) + self.costly

    def to_json(self) -> dict[str, Any]:
        return {
            "new": [finding.to_json() for finding in self.new],
            "counts": dict(self.counts),
            "met": dict(self.met),
            "spent": dict(self.spent),
            "costly": self.costly,
            "plays": self.player.plays,
            "processes": self.processes,
        }

    def go_on(self, said: dict[str, Any], started: float) -> None:
        """After the process of a session died: with what it had found, and with other draws."""
        self.started, self.processes = started, int(said["processes"]) + 1
        self.random = Random(f"{self.seed} {self.processes}")
        self.new = [ProgramFinding.from_json(data) for data in said["new"]]
        self.counts.update(said["counts"])
        self.met.update(said["met"])
        self.spent.update(said["spent"])
        self.costly = float(said["costly"])
        self.player.plays = dict(said["plays"])

    def died_of(self, program: Program) -> None:
        """A process died while it played this program: find the rung at which a fresh process dies, too."""
        for rung in ORDER:
            finding = self._finding(Alarm(program, rung, "raises", "the process died"))
            try:
                FRESH.call(exit_code, str(write_script(finding)), _cache(), limit=3 * self.player.patience)
            except Died:
                self._confirm(finding)
                return

    # ------------------------------------------------------------------------------------------- drawing

    def round(self) -> None:
        """Ten programs of one grammar."""
        grammar = self._grammar()
        start = time.monotonic()
        self.wants.clear()
        try:
            for alarm in self._alarms(grammar):
                self.look_into(alarm)
        except Busy:
            self.counts["given up on a busy machine"] += 1
        finally:
            self.spent[grammar.name] += time.monotonic() - start  # type: ignore[assignment]
        if len(self.waiting) >= TOGETHER["inductor"] and self.costly <= COSTLY * self.seconds:
            self._compile_waiting()

    def _compile_waiting(self) -> None:
        """Programs that cheap rungs found nothing in, of all grammars, through the whole compiler."""
        start = time.monotonic()
        some, self.waiting = self.waiting[: TOGETHER["inductor"]], self.waiting[TOGETHER["inductor"] :]
        self.wants = dict(some)
        try:
            for program, got in list(self._played([program for program, _ in some], "inductor", {})):
                found = difference(self.wants[program], got, program.rules.signs)
                if found is not None:
                    self.look_into(Alarm(program, "inductor", *found))
        except Busy:
            self.counts["given up on a busy machine"] += 1
        finally:
            self.costly += time.monotonic() - start

    def _grammar(self) -> Grammar:
        """Each has its turn; then those are preferred that gave more causes for the time they took."""
        fresh = [name for name in self.grammars if not self.spent[name]]
        if fresh:
            return GRAMMARS[fresh[0]]
        weights = [(1.0 + self.yielded[name]) / (20.0 + self.spent[name]) for name in self.grammars]
        return GRAMMARS[self.random.choices(list(self.grammars), weights)[0]]

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

    def _programs(self, grammar: Grammar) -> Iterator[Program]:
        for _ in range(DRAWN):
            program = self._draw(grammar)
            if self._found_before(program):
                continue
            want = self.player.eager(program)
            if want is None:
                self.counts["rejected"] += 1
                continue
            self.wants[program] = want
            yield program

    def _found_before(self, program: Program) -> bool:
        """Does it hold all of a program that was found? Three times it is played again, then it is left out."""
        chosen = {*program.choices}
        for found in self.new:
            rules = found.program.rules
            if found.program.grammar != program.grammar:
                continue
            plain = dict(found.program.choices)
            odd = {(slot, plain[slot]) for slot in rules.odd(plain, rules.slots)}
            if odd and odd <= chosen and found.met >= 3:
                self.counts["left out"] += 1
                return True
        return False

    # ------------------------------------------------------------------------------------------- playing

    def _alarms(self, grammar: Grammar) -> Iterator[Alarm]:
        left = list(self._programs(grammar))
        compiled: dict[Program, int] = {}
        for rung in grammar.rungs:
            if rung == "inductor":
                worth = [program for program in left if self._worth_compiling(program, compiled)]
                self.waiting += [(program, self.wants[program]) for program in worth]
                self.random.shuffle(self.waiting)
                del self.waiting[WAITING:]
                return
            for program, got in list(self._played(left, rung, compiled)):
                found = difference(self.wants[program], got, grammar.signs)
                if found is not None:
                    left.remove(program)
                    yield Alarm(program, rung, *found)

    def _worth_compiling(self, program: Program, compiled: dict[Program, int]) -> bool:
        """Where eager raises and no graph came of it, the C++ compiler sees nothing of it."""
        if program.rules.alone:
            return self.random.randrange(ALONE) == 0
        if self.wants[program][0] == "value":
            return True
        return compiled.get(program, 1) > 0 and self.random.randrange(RAISING) == 0

    def _played(
        self, programs: Sequence[Program], rung: str, compiled: dict[Program, int]
    ) -> Iterator[tuple[Program, Outcome]]:
        shared = [p for p in programs if not p.rules.alone and self.wants[p][0] == "value"]
        size = TOGETHER.get(rung, 1)
        for start in range(0, len(shared), size):
            yield from self._together(shared[start : start + size], rung)
        for program in programs:
            if program not in shared:
                yield program, self._alone(program, rung)
                compiled[program] = self.player.graphs

    def _alone(self, program: Program, rung: str) -> Outcome:
        self.journal(program)
        self.tell(f"program.{program.grammar}", rung)
        with self.reach.watched() as new:
            got = self.player.play(program, rung)
        if new:
            self._keep(program)
        return got

    def _keep(self, program: Program) -> None:
        kept = self.corpus.setdefault(program.grammar, [])
        kept.append(program)
        del kept[:-50]

    def _together(self, programs: Sequence[Program], rung: str) -> Iterator[tuple[Program, Outcome]]:
        """All of them in one compile; where that fails, the halves."""
        if len(programs) < 2:
            yield from ((program, self._alone(program, rung)) for program in programs)
            return
        self.journal(programs[0])
        self.tell(f"program.{programs[0].grammar}", f"{rung}, {len(programs)} together")
        with self.reach.watched() as new:
            outcomes = self.player.together(programs, rung)
        self.counts["compiled together"] += 1
        if outcomes is None:
            half = len(programs) // 2
            yield from self._together(programs[:half], rung)
            yield from self._together(programs[half:], rung)
            return
        if new:
            self._keep(self.random.choice(list(programs)))
        for program, got in zip(programs, outcomes, strict=True):
            differs = difference(self.wants[program], got, program.rules.signs) is not None
            yield program, self._alone(program, rung) if differs else got

    # ------------------------------------------------------------------------------------------ looking into

    def look_into(self, alarm: Alarm) -> None:
        """Count what was found before; of the rest, the lowest rung, the smallest program, and its cause."""
        if self._counted(alarm) or self._declined(alarm):
            return
        lowest = self._lowest(alarm)
        if lowest is None or self._rounding(lowest):
            return
        small = self._smallest(lowest)
        finding = self._finding(small)
        if not self._known(finding):
            self._confirm(finding)

    def _finding(self, alarm: Alarm) -> ProgramFinding:
        stage = RUNGS[alarm.rung].stage.value
        cause = cause_of(alarm.program, stage, alarm.what, alarm.detail)
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
        """Does the compiler say that it is not made for this?"""
        declined = alarm.what == "raises" and DECLINED.search(alarm.detail) is not None
        self.counts["declined"] += declined
        return declined

    def _counted(self, alarm: Alarm) -> bool:
        """Does a program that was found explain this one?"""
        chosen = {*alarm.program.choices}
        for found in self.new:
            rules = found.program.rules
            plain = dict(found.program.choices)
            odd = {(slot, plain[slot]) for slot in rules.odd(plain, rules.slots)}
            if found.program.grammar == alarm.program.grammar and found.what == alarm.what and odd and odd <= chosen:
                found.met += 1
                self.met[found.cause_text] += 1
                return True
        return False

    def _lowest(self, alarm: Alarm) -> Alarm | None:
        """The alarm at the first rung that shows a difference, played alone; None if none does."""
        for rung in ORDER[: ORDER.index(alarm.rung) + 1]:
            found = self._differs(alarm.program, rung)
            if found is not None:
                return Alarm(alarm.program, rung, *found)
        self.counts["gone when played alone"] += 1
        return None

    def _differs(self, program: Program, rung: str) -> tuple[str, str] | None:
        want = self.wants.get(program) or self.player.eager(program)
        if want is None:
            return None
        self.wants[program] = want
        return difference(want, self.player.play(program, rung), program.rules.signs)

    def _rounding(self, alarm: Alarm) -> bool:
        """Is it only that compiled code keeps more digits in between? Eager's rounding is not promised."""
        if alarm.what not in ("value", "sign of zero") or not any(word in alarm.program.source for word in LOW):
            return False
        got = self.player.play(alarm.program, alarm.rung, **ROUNDING)
        if difference(self.wants[alarm.program], got, alarm.program.rules.signs) is None:
            self.counts["rounding"] += 1
            return True
        return False

    def _smallest(self, alarm: Alarm) -> Alarm:
        """The same difference in a plainer program, for as long as there is time."""
        until = processor_seconds() + SHRINKING
        rules = alarm.program.rules
        smaller = True
        while smaller and processor_seconds() < until:
            smaller = False
            for choices in rules.smaller(dict(alarm.program.choices)):
                if processor_seconds() > until:
                    break
                program = Program.of(rules, choices)
                found = self._differs(program, alarm.rung)
                if found is not None and found[0] == alarm.what:
                    alarm, smaller = Alarm(program, alarm.rung, *found), True
                    break
        return alarm

    # ------------------------------------------------------------------------------------------ confirming

    def _confirm(self, finding: ProgramFinding) -> None:
        """In a fresh process its script must exit 1; a process that dies of it confirms it, too."""
        file = write_script(finding)
        self.tell(f"program.{finding.program.grammar}", "confirming in a fresh process")
        try:
            code = FRESH.call(exit_code, str(file), _cache(), limit=3 * self.player.patience)
        except Died as died:
            code = 1
            finding.notes.append(f"a fresh process ended: {died}")
        finding.repro, finding.confirmed = str(file), code == 1
        if not finding.confirmed:
            file.unlink(missing_ok=True)
            finding.notes.append(f"its script exits {code} in a fresh process")
            self.unconfirmed.append(finding)
            return
        if finding.rung == "inductor":
            self._name_stage(finding, str(file))
        self.yielded[finding.program.grammar] += 1
        self.new.append(finding)
        self.findings.add(finding)

    def _name_stage(self, finding: ProgramFinding, file: str) -> None:
        """Ask triage, as long as that does not take too much of the session."""
        if self.triage > TRIAGE_SHARE * 60 * self.minutes:
            finding.notes.append("no time was left to ask triage for the stage")
            return
        start = time.monotonic()
        try:
            stage, finding.culprit = FRESH.call(stage_and_culprit, file, limit=240.0)
            finding.stage = stage or finding.stage
        except Exception as error:  # triage's own trouble is no reason to lose the finding
            finding.notes.append(f"triage gave no answer: {type(error).__name__}: {error}"[:200])
        self.triage += time.monotonic() - start
        write_script(finding)


def _cache() -> str:
    """The session's folder for what the compiler keeps: it was empty at the session's start."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")
