"""What is done with programs in processes of their own: they are played rung by rung, and what differs is made plain.

A task runs in a process that has compiled nothing before and is thrown away afterwards: a program that kills its process, or
leaves torch unable to compute, costs the other programs of its task a second start and no more.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from conformance.fuzz import foreign
from conformance.fuzz.observed import difference
from conformance.fuzz.program import Program
from conformance.fuzz.reach import Reach
from conformance.fuzz.rungs import ORDER, Busy, Outcome, Player, mended, on, processor_seconds

TOGETHER = {"decompositions": 5, "inductor": 20}  # programs in one compile
FOREIGN = 4  # the same, for a backend that is no torch.compile
SHRINKING = 40.0  # seconds that one alarm may compute to become smaller
SHRINKING_FOREIGN = 15.0
JOB_FOREIGN = 30.0  # seconds that a job for such a backend may compute; what is left then is not played
LOW = ("float16", "bfloat16", "half()")
ROUNDING = {"emulate_precision_casts": True}  # compiled code rounds where eager does
DECLINED = re.compile(
    r"does not (currently |yet )?(support|handle)|not (yet |currently )?supported|Unsupported|NotImplementedError"
    r"|not possible to functionalize|CannotRun|Refused: "
)
ELSEWHERE = re.compile(r"[Dd]evice mismatch|the same device|expected device")
ALONE = "alone: the whole compiler gives what eager gives"
BUSY = "given up on a busy machine"
Things = frozenset[tuple[str, str]]  # of the compiler, by stage


@dataclass
class Alarm:
    """A program that differs from eager on a rung."""

    program: Program
    rung: str
    what: str
    detail: str
    notes: tuple[str, ...] = ()

    @property
    def declined(self) -> bool:
        """Does the compiler say that it is not made for this? Programs make tensors on the CPU, which a GPU's eager refuses, too."""
        if self.what != "raises":
            return False
        for_gpu = foreign.is_place(self.rung) and not self.rung.endswith("/cpu")
        return bool(DECLINED.search(self.detail) or (for_gpu and ELSEWHERE.search(self.detail)))


@dataclass
class Played:
    """alarms   what differs
    silent   programs that differ nowhere, and whether one graph holds each of them
    left     programs that were not played, since the process could not go on; they are played alone
    refused  of `silent`, those that eager refuses
    reached  programs, and what of the compiler was seen while they were played
    plays    by rung; seconds: that the processor worked
    """

    alarms: list[Alarm] = field(default_factory=list)
    silent: dict[Program, bool] = field(default_factory=dict)
    left: list[Program] = field(default_factory=list)
    refused: set[Program] = field(default_factory=set)
    reached: list[tuple[Program, Things]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    plays: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def compared(program: Program, rung: str, want: Outcome, got: Outcome) -> tuple[str, str] | None:
    """How what a rung gave differs from eager. An exported program promises no layout, and has no gradients; in a form of it
    that is not the last, complex numbers may be pairs of real ones."""
    found = difference(want, got, program.rules.signs)
    if found is None or not foreign.is_place(rung):
        return found
    if found[0] == "raises" and (said := found[1].partition(f"{foreign.Observed.__name__}: ")[2]):
        return "observed", said
    complex_parts = found[0] in ("dtype", "shape") and "complex" in f"{found[1]} {program.source}"
    sizes = found[0] == "structure" and "eager ('Size'" in found[1]  # a torch.Size is a tuple to torch.export
    return None if complex_parts or sizes or found[0] in ("stride", "requires_grad") else found


def alike(found: tuple[str, str], alarm: Alarm) -> bool:
    """Is it the same thing that differs, and no refusal? Of what a stage shows, the check, the pass and the kind of difference
    must be the same."""
    same = found[0] == alarm.what and not Alarm(alarm.program, alarm.rung, *found).declined
    return same and (found[0] != "observed" or found[1].split(": ")[:3] == alarm.detail.split(": ")[:3])


def play_all(programs: Sequence[Program], rungs: Sequence[str], patience: float, shared: bool = True) -> Played:
    """Play programs on these rungs, one rung after the other; a program that differs on one is not played on the next."""
    return Playing(patience, shared).run(programs, rungs)


def look_into(alarm: Alarm, patience: float) -> tuple[Alarm | None, str]:
    """The alarm at the lowest rung that shows it, in the plainest program; None and why, where it is no finding."""
    looking = Looking(patience)
    try:
        lowest = looking.lowest(alarm)
        if lowest is None:
            return None, "gone when played alone"
        if lowest.declined:
            return None, "declined"
        if looking.rounding(lowest):
            return None, "rounding"
        return looking.higher_up(looking.smallest(lowest)), ""
    except Busy:
        return None, BUSY


def shows(alarm: Alarm, patience: float) -> bool:
    """Does the program differ in the same way in this process, too?"""
    looking = Looking(patience)
    found = looking.differs(alarm.program, alarm.rung)
    return found is not None and found[0] == alarm.what


class Stopped(Exception):
    """Torch no longer computes in this process."""


class Playing:
    """Plays programs and compares them with eager."""

    def __init__(self, patience: float, shared: bool = True) -> None:
        self.player = Player(patience)
        self.shared = shared
        self.reach = Reach()
        self.wants: dict[Program, Outcome] = {}
        self.whole: dict[Program, bool] = {}
        self.did = Played()
        self.start = processor_seconds()

    def run(self, programs: Sequence[Program], rungs: Sequence[str]) -> Played:
        self.start, began = processor_seconds(), time.monotonic()
        exported = any(foreign.is_place(rung) for rung in rungs)
        left = [program for program in programs if self._wanted(program, exported)]
        try:
            for rung in rungs:
                self._on(rung, left)
        except Stopped:
            self.did.left, left = left, []
        except Busy:
            self.did.counts[BUSY] += 1
            left = []
        self.did.silent = {program: self.whole.get(program, False) for program in left}
        self.did.refused = {program for program in left if self.wants[program][0] == "raised"}
        self.did.plays = self.player.plays
        self.did.seconds = max(processor_seconds() - self.start, 0.0) or time.monotonic() - began
        return self.did

    def _wanted(self, program: Program, exported: bool) -> bool:
        """Has eager an answer? What it refuses is no program to export."""
        try:
            want = self.player.eager(program)
        except SyntaxError:  # a mutation that gave no program
            want = None
        if want is None or (exported and want[0] == "raised"):
            self.did.counts["rejected"] += 1
            return False
        self.wants[program] = want
        return True

    def _on(self, rung: str, left: list[Program]) -> None:
        """Play all that are left on this rung; those that differ are left no longer."""
        for program, got in self._played(list(left), rung):
            found = compared(program, rung, self.wants[program], got)
            if found is not None:
                left.remove(program)
                self.did.alarms.append(Alarm(program, rung, *found))
            if not mended():
                raise Stopped
            if foreign.is_place(rung) and processor_seconds() - self.start > JOB_FOREIGN:
                return

    def _played(self, programs: list[Program], rung: str) -> Iterator[tuple[Program, Outcome]]:
        sharing = [p for p in programs if self.shared and not p.rules.alone and self.wants[p][0] == "value"]
        size = TOGETHER.get(rung, FOREIGN if foreign.is_place(rung) else 1)
        for start in range(0, len(sharing), size):
            yield from self._together(sharing[start : start + size], rung)
        for program in programs:
            if program not in sharing:
                yield program, self._alone(program, rung)

    def _alone(self, program: Program, rung: str) -> Outcome:
        with self.reach.watched():
            got = self.player.play(program, rung)
        self.whole[program] = self.player.pieces == 1
        self._reached(program)
        return got

    def _reached(self, program: Program) -> None:
        self.did.reached.append((program, frozenset(self.reach.reached)))
        self.reach.reached.clear()

    def _together(self, programs: Sequence[Program], rung: str) -> Iterator[tuple[Program, Outcome]]:
        """All of them in one compile; where that fails, the halves; what differs, alone."""
        if len(programs) < 2:
            yield from ((program, self._alone(program, rung)) for program in programs)
            return
        with self.reach.watched():
            outcomes = self.player.together(programs, rung)
        self.did.counts["compiled together"] += 1
        if not mended():
            raise Stopped
        if outcomes is None:
            half = len(programs) // 2
            yield from self._together(programs[:half], rung)
            yield from self._together(programs[half:], rung)
            return
        if rung in ORDER:
            self._see_breaks(programs)
        self._reached(programs[self.did.counts["compiled together"] % len(programs)])
        for program, got in zip(programs, outcomes, strict=True):
            differs = compared(program, rung, self.wants[program], got) is not None
            yield program, self._alone(program, rung) if differs else got

    def _see_breaks(self, programs: Sequence[Program]) -> None:
        """Which of them are one graph each? Only these share a compile to C++: a break in one is a break in all."""
        if self.player.pieces == 1:
            self.whole.update(dict.fromkeys(programs, True))
            return
        for program in programs:
            if program not in self.whole:
                self.player.play(program, "capture")
                self.whole[program] = self.player.pieces == 1


class Looking:
    """Makes one alarm plain."""

    def __init__(self, patience: float) -> None:
        self.player = Player(patience)
        self.wants: dict[Program, Outcome | None] = {}

    def lowest(self, alarm: Alarm) -> Alarm | None:
        """The alarm at the first rung that shows a difference, played alone; None if none does."""
        played = {"functionalization", *alarm.program.rules.rungs}
        lower = [rung for rung in ORDER[: ORDER.index(alarm.rung)] if rung in played] if alarm.rung in ORDER else []
        for rung in (*lower, alarm.rung):
            found = self.differs(alarm.program, rung)
            if found is not None:
                return Alarm(alarm.program, rung, *found)
        return None

    def differs(self, program: Program, rung: str) -> tuple[str, str] | None:
        if program not in self.wants:
            self.wants[program] = self.player.eager(program)
        want = self.wants[program]
        if want is None or not mended():
            return None
        return compared(program, rung, want, self.player.play(program, rung))

    def rounding(self, alarm: Alarm) -> bool:
        """Is it only that compiled code keeps more digits in between? Eager's rounding is not promised."""
        if alarm.what not in ("value", "sign of zero") or not any(word in alarm.program.source for word in LOW):
            return False
        got = self.player.play(alarm.program, alarm.rung, **ROUNDING)
        want = self.wants[alarm.program]
        return want is not None and difference(want, got, alarm.program.rules.signs) is None

    def higher_up(self, alarm: Alarm) -> Alarm:
        """Does the whole compiler differ, too? Where it does not, that is said."""
        if alarm.rung not in ORDER[:-1] or alarm.what == "breaks" or self.differs(alarm.program, ORDER[-1]) is not None:
            return alarm
        note = f"backend={on(alarm.rung).backend!r} {ALONE}"
        return replace(alarm, notes=(*alarm.notes, note))

    def smallest(self, alarm: Alarm) -> Alarm:
        """The same difference in a plainer program, for as long as there is time."""
        until = processor_seconds() + (SHRINKING if alarm.rung in ORDER else SHRINKING_FOREIGN)
        rules = alarm.program.rules
        smaller = True
        while smaller and processor_seconds() < until:
            smaller = False
            for choices in rules.smaller(dict(alarm.program.choices)):
                if processor_seconds() > until:
                    break
                program = Program.of(rules, choices)
                found = self.differs(program, alarm.rung)
                if found is not None and alike(found, alarm):
                    alarm, smaller = Alarm(program, alarm.rung, *found), True
                    break
        return alarm
