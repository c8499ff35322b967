"""The calls of one operator through the rungs, in a process of its own: many calls in one compile, and one by one where one is wrong."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import oracle
from conformance.alarm import alarm
from conformance.errors import CannotRun, first_line
from conformance.ops.call import Call, Key
from conformance.ops.form import ERRORS, calls_of, error_calls
from conformance.ops.judgement import EagerRefuses, Expected, OnTarget, differences, expected, outcomes
from conformance.ops.operator import Operator
from conformance.ops.rung import Compile, Refusal, Rung, is_library
from conformance.ops.seam import seam
from conformance.ops.words import COMPILED, DECOMPOSED, FALLBACK, LIBRARY, REFUSES, WRONG
from conformance.oracle import Difference, Outcome
from conformance.verdict import Kind

Say = Callable[[Any], None]

EAGER_SECONDS = 30.0  # that eager may take for a call; it takes milliseconds
NOT_HERE = "cannot be run here"  # an interpreter's limit: nothing can be said of the compiler


@dataclass(frozen=True)
class Begun:
    """A process is about to work on these calls: if it dies, one of them did it. `rung` is empty where eager is at work."""

    rung: str
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Skipped:
    """Nothing can be said of this call, for this reason."""

    key: Key
    reason: str


@dataclass
class Judged:
    """What a rung made of a call. `findings` are kinds with what was seen; `stage` is the stage at fault, where it was asked for;
    `ops` are the operators that the graph has in place of the call; `unbuilt` those that the compiler has a converter for, and did not
    convert."""

    rung: str
    key: Key
    how: str
    findings: list[tuple[str, str]] = field(default_factory=list)
    sentence: str = ""
    seconds: float = 0.0
    note: str = ""
    stage: str = ""
    ops: tuple[str, ...] = ()
    unbuilt: tuple[str, ...] = ()


@dataclass
class Task:
    """What a process is asked to do. `done`: calls that an earlier process has dealt with, by rung. `alone`: calls that get a compile
    each, since a process died on one of them."""

    operator: Operator
    dtypes: tuple[str, ...]
    forms: tuple[str, ...]
    samples: int
    rungs: tuple[Rung, ...]
    errors: bool = False
    done: frozenset[tuple[str, Key]] = frozenset()
    alone: frozenset[Key] = frozenset()
    eager: OnTarget | None = None  # a module as the target runs it uncompiled; None: as it is
    check: Rung | None = None  # the whole program: what a finding of an earlier rung is confirmed with

    def calls(self) -> Iterator[Call | Skipped]:
        """The calls; where the database cannot make its samples here, why not."""
        for dtype in self.dtypes:
            try:
                yield from calls_of(self.operator, dtype, self.forms, self.samples)
            except Exception as error:
                yield Skipped(Key(dtype, "plain", 0), f"the database cannot make its samples: {first_line(error)}")
        if self.errors and ERRORS in self.forms:
            try:
                yield from error_calls(self.operator)
            except Exception as error:
                yield Skipped(Key(self.dtypes[0], ERRORS, 0), f"the database cannot make them: {first_line(error)}")


def examine(task: Task, say: Say) -> None:
    """Judge every call of the task at every rung. A call that is wrong at one rung does not go to the next."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of what torch deprecates
    known = list(_in_eager(task, say))
    for rung in task.rungs:
        name = rung.stage.value
        work = [one for one in known if (name, one.call.key) not in task.done]
        wrong: set[Key] = {one.call.key for one in known if (f"wrong {name}", one.call.key) in task.done}
        found = []
        for judged in Examination(task.operator, rung, say, task.alone).run(work):
            say(judged)
            if judged.findings:
                found.append(judged)
                wrong.add(judged.key)
        if task.check is not None and task.check.stage is not rung.stage:
            _confirm(task, {one.call.key: one for one in known}, found, say)
        known = [one for one in known if one.call.key not in wrong]


def _in_eager(task: Task, say: Say) -> Iterator[Expected]:
    """What eager gives for each call; calls that it refuses are said to be skipped."""
    for call in task.calls():
        if isinstance(call, Skipped):
            say(call)
            continue
        if ("", call.key) in task.done:
            continue
        say(Begun("", (call.key,)))
        try:
            # A polynomial of degree 2**63 does not end in eager either. No handler of Python's runs while an operator does, so the signal
            # ends the process; another one goes on without the call.
            with alarm(EAGER_SECONDS, signal.SIG_DFL):
                wanted = expected(call, task.eager)
        except EagerRefuses as refusal:
            say(Skipped(call.key, str(refusal)[:200]))
        else:
            yield wanted


def _confirm(task: Task, known: dict[Key, Expected], wrong: list[Judged], say: Say) -> None:
    """A graph that is run before its time may differ where the program that is made of it does not: nobody sees that. One call of each
    class is compiled to the end; where that is right, the class is a note and no finding."""
    assert task.check is not None
    classes: dict[tuple[str, ...], list[Judged]] = {}
    for one in wrong:
        classes.setdefault((one.key.form, *sorted({kind for kind, _ in one.findings})), []).append(one)
    for members in classes.values():
        subject = known[members[0].key]
        ended = next(iter(Examination(task.operator, task.check, say, frozenset()).run([subject])))
        if not ended.findings:
            for one in members:
                one.note = f"only where the graph is held here: {one.findings[0][1]}"
                one.findings, one.how = [], ended.how
                say(one)  # in place of what was said before


@dataclass
class Examination:
    """Calls of one operator at one rung."""

    operator: Operator
    rung: Rung
    say: Say
    alone: frozenset[Key]

    def run(self, work: Sequence[Expected]) -> Iterator[Judged]:
        for chunk in self._chunks(work):
            for judged in self._chunk(chunk):
                if judged.how == NOT_HERE:
                    self.say(Skipped(judged.key, judged.note))
                else:
                    yield judged

    def _chunks(self, work: Sequence[Expected]) -> Iterator[list[Expected]]:
        """Calls that can share a compile: with gradients or without, called once or twice. One that raises stands alone."""
        groups: dict[tuple[Any, ...], list[Expected]] = {}
        for one in work:
            call = one.call
            apart = call.key if call.raises or call.key in self.alone else None
            groups.setdefault((call.grad, bool(call.again), apart), []).append(one)
        for members in groups.values():
            # With symbolic sizes, guards and their solver cost more with every call.
            width = max(self.rung.width // 6, 1) if members[0].call.again else self.rung.width
            for at in range(0, len(members), width):
                yield members[at : at + width]

    def _chunk(self, chunk: list[Expected]) -> Iterator[Judged]:
        started = time.perf_counter()
        self.say(Begun(self.rung.stage.value, tuple(one.call.key for one in chunk)))
        if len(chunk) == 1:
            yield self._single(chunk[0])
            return
        try:
            with self.rung.compile([one.call for one in chunk]) as made:
                left = self._called(chunk, made)
        except Exception:
            middle = len(chunk) // 2
            yield from self._chunk(chunk[:middle])
            yield from self._chunk(chunk[middle:])
            return
        seconds = (time.perf_counter() - started) / len(chunk)
        for index, (one, seen) in enumerate(zip(chunk, left, strict=True)):
            try:
                found = self._compared(one, seen)
            except CannotRun as reason:
                yield self._not_here(one, reason)
                continue
            if found:
                alone = self._single(one)
                if not alone.findings and alone.how != NOT_HERE:
                    alone = self._beside(one, found, alone, len(chunk))
                yield alone
            else:
                yield self._right(one, made, index, seconds)

    def _not_here(self, one: Expected, reason: CannotRun) -> Judged:
        return Judged(self.rung.stage.value, one.call.key, NOT_HERE, note=f"cannot be examined here: {reason}"[:200])

    def _beside(self, one: Expected, found: list[Difference], alone: Judged, count: int) -> Judged:
        """Right alone and wrong in a wide graph."""
        alone.findings = [
            (each.kind.value, f"in one graph with {count - 1} calls more, and right alone: {each}") for each in found
        ]
        alone.how, alone.sentence = WRONG, one.call.sentence()
        return alone

    def _single(self, one: Expected) -> Judged:
        """A compile of its own."""
        started, key = time.perf_counter(), one.call.key
        self.say(Begun(self.rung.stage.value, (key,)))
        fallback = ""
        try:
            try:
                with self.rung.compile([one.call], whole=not one.call.raises) as made:
                    left = self._called([one], made)[0]
            except CannotRun:
                raise
            except Exception as broken:
                if one.call.raises or self.rung.exported:
                    raise
                # Without fullgraph=True, the default, a graph break may take the place of what cannot be captured.
                captured = isinstance(broken, seam.unsupported)
                fallback = ("graph break: " if captured else "raises with fullgraph=True: ") + first_line(broken)[:160]
                with self.rung.compile([one.call], whole=False) as made:
                    left = self._called([one], made)[0]
        except CannotRun as reason:
            return self._not_here(one, reason)
        except Exception as error:
            if one.call.raises:
                return Judged(self.rung.stage.value, key, DECOMPOSED, seconds=time.perf_counter() - started)
            return self._refused(one, error, time.perf_counter() - started)
        seconds = time.perf_counter() - started
        try:
            found = self._compared(one, left)
        except CannotRun as reason:
            return self._not_here(one, reason)
        if found:
            return self._wrong(one, found, WRONG, seconds)
        if fallback:
            return Judged(self.rung.stage.value, key, FALLBACK, seconds=seconds, note=fallback)
        return self._right(one, made, 0, seconds)

    def _called(self, chunk: list[Expected], made: Compile) -> list[list[Outcome]]:
        """What each call left behind, a first and perhaps a second time."""
        calls = [one.call for one in chunk]
        rounds = [[oracle.clone_inputs(call.tensors) for call in calls]]
        if calls[0].again:
            rounds.append([oracle.clone_inputs(call.again) for call in calls])
        left: list[list[Outcome]] = [[] for _ in calls]
        for inputs in rounds:
            oracle.seed()
            with torch.set_grad_enabled(calls[0].grad):
                result = made.function(*(tensor for given in inputs for tensor in given))
                results = result if len(calls) > 1 else (result,)
                for place, outcome in zip(left, outcomes(calls, results, inputs), strict=True):
                    place.append(outcome)
        return left

    def _compared(self, one: Expected, left: list[Outcome]) -> list[Difference]:
        """Where the call differs from eager. Raises `CannotRun` where the two cannot be compared: that is our failure."""
        try:
            layouts = self.rung.keeps_layouts
            found = differences(self.operator, one.call, left[0], one.first, layouts=layouts)
            if not found and one.second is not None:
                for each in differences(self.operator, one.call, left[1], one.second, again=True, layouts=layouts):
                    found.append(Difference(each.kind, each.where, f"in the second call {each.detail}"))
        except Exception as error:
            raise CannotRun(f"the results cannot be compared: {first_line(error)}") from error
        return found

    def _refused(self, one: Expected, error: Exception, seconds: float) -> Judged:
        """Eager takes the call and the compiler raises; it is no finding where the compiler says that it takes no such program."""
        known = error if isinstance(error, Refusal) else None
        said = str(error) if known else first_line(error)
        judged = self._wrong(one, [Difference(Kind.CRASH, "call", said)], REFUSES, seconds)
        if known is not None:
            judged.stage, judged.unbuilt = known.stage.value, known.unbuilt
            if known.by_design:
                judged.findings, judged.note, judged.unbuilt = [], said, ()
        return judged

    def _wrong(self, one: Expected, found: list[Difference], how: str, seconds: float) -> Judged:
        findings = [(each.kind.value, str(each)) for each in found[:3]]
        judged = Judged(self.rung.stage.value, one.call.key, how, findings, one.call.sentence(), seconds)
        ladder = getattr(self.rung, "stage_at_fault", None)
        if ladder is not None and how == WRONG:
            with suppress(Exception):
                judged.stage = ladder(lambda made: bool(self._compared(one, self._called([one], made)[0])), one.call)
        return judged

    def _right(self, one: Expected, made: Compile, index: int, seconds: float) -> Judged:
        how = COMPILED if made.kernels else DECOMPOSED
        if made.externs:
            externs = made.externs[index]
            others = [name for name in externs if self.rung.exported or not is_library(name)]
            how = FALLBACK if others else LIBRARY if externs else COMPILED
        ops = tuple(sorted(made.ops[index])) if made.ops else ()
        unbuilt = tuple(made.unbuilt[index]) if made.unbuilt else ()
        return Judged(self.rung.stage.value, one.call.key, how, seconds=seconds, ops=ops, unbuilt=unbuilt)
