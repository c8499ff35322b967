"""Measure: compile a micrograph once and write down what every stage showed. What is right or wrong about it is judged elsewhere.

    trace = examine(Case(micrograph, target), backend, stages)

Here are the steps of a compile and its first call; further_calls.py has the calls after it. The only thing that is decided while
measuring is which stage a difference from eager belongs to: ladder.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from conformance import oracle
from conformance.backends.base import Backend, CannotRun, Case, Compiled
from conformance.checks.measured import LADDER
from conformance.errors import NotInEager, UsageError, first_line
from conformance.further_calls import FurtherCalls
from conformance.ladder import GRAPH_STAGES, Ladder
from conformance.stage import STAGES, Stage
from conformance.trace import Observation, Trace
from conformance.verdict import Finding, Kind

Stop = Callable[[Trace], bool]
Progress = Callable[[Stage], None]
Tell = Callable[[Trace], None]


def examine(
    case: Case,
    backend: Backend,
    stages: Collection[Stage] = STAGES,
    stop: Stop = lambda trace: False,
    progress: Progress = lambda stage: None,
    careful: Tell | None = None,
) -> Trace:
    """One compile, all stages that were asked for. `stop` is asked before the costly last steps whether the trace shows enough already;
    `progress` is told which stage is being worked on. `careful` is for a program that ended the process before: its earlier forms run
    first, and before each `careful` is told what was seen until then."""
    from conformance.examine_scenario import ScenarioExamination

    kind = ScenarioExamination if case.micrograph.has_scenario() else Examination
    return kind(case, backend, stages, stop, progress, careful).trace()


class Examination(Ladder):
    """The steps of one compile, in the order that disturbs it least."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        stages: Collection[Stage] = STAGES,
        stop: Stop = lambda trace: False,
        progress: Progress = lambda stage: None,
        careful: Tell | None = None,
    ) -> None:
        super().__init__(case, backend, stages)
        self.stop, self.progress, self.careful = stop, progress, careful
        self._working_on, self._since = Stage.CAPTURE, time.perf_counter()
        self._times: dict[Stage, float] = {}
        # Is a stage that the compiler comes to the one that is worked on? Not while probes compile again.
        self._follow = True

    def trace(self) -> Trace:
        if all(stage in self.found.unavailable for stage in self.stages):
            return self.found
        try:
            compiled = self._opened()
        except UsageError:
            raise
        except Exception as error:
            self.found.observations[Stage.CAPTURE] = _crash(error)
            return self.found
        try:
            self._look(compiled)
        finally:
            self._shut(compiled)
        self._at(Stage.CAPTURE)  # books the time of the last stage
        self._book_times()
        return self.found

    def _book_times(self) -> None:
        """A backend that compiles before it can say which stage it has come to has measured its stages itself: their time
        is theirs, and not capture's."""
        own: dict[Stage, float] = {
            stage: seen.seconds for stage, seen in self.found.observations.items() if stage is not Stage.CAPTURE
        }
        times = {stage: self._times.get(stage, 0.0) + own.get(stage, 0.0) for stage in self.found.observations}
        if Stage.CAPTURE in times:
            times[Stage.CAPTURE] = max(0.0, times[Stage.CAPTURE] - sum(own.values()))
        for stage, seen in self.found.observations.items():
            seen.seconds = times[stage]

    def _opened(self) -> Compiled:
        self._at(Stage.CAPTURE)
        compiled = self.backend.compile(self.case)
        compiled.progress = self._come_to
        return compiled

    def _shut(self, compiled: Compiled) -> None:
        compiled.close()

    def _at(self, stage: Stage) -> None:
        """From now on a stage is worked on: what passed until now is the time of the one before."""
        now = time.perf_counter()
        self._times[self._working_on] = self._times.get(self._working_on, 0.0) + now - self._since
        self._working_on, self._since = stage, now
        self.progress(stage)

    def _come_to(self, stage: Stage) -> None:
        """The compiler itself says which stage it has come to."""
        if self._follow and stage is not self._working_on:
            self._at(stage)

    def _observable(self, stage: Stage) -> bool:
        return stage not in self.found.unavailable

    # --------------------------------------------------------------------------------------------- the steps

    def _look(self, compiled: Compiled) -> None:
        self._compiled_module = compiled.module
        try:
            if self.careful is not None:
                self._look_carefully(compiled, self.careful)
                return
            first, ref = self._first_call(compiled)
            if self._observe_compile(compiled, first, ref):
                return
            if first is not None:
                self._runtime(compiled, first, ref)
            else:
                self._climb(compiled, 0, ref)
            if not self.stop(self.found):
                self._recapture(compiled)
            if Stage.CACHE in self.stages and self._observable(Stage.CACHE) and not self.stop(self.found):
                self._observe(compiled, Stage.CACHE)
        except UsageError:
            raise
        except NotInEager as reason:
            self.found.unavailable |= dict.fromkeys(self.stages, str(reason))
        except Exception as error:  # of the compiler, where nobody expected it
            self.found.at(self._working_on).findings += _crash(error).findings

    def _look_carefully(self, compiled: Compiled, tell: Tell) -> None:
        """The first form compiles the program and does not run it, so that every stage of the compile is observed. Whoever ends the
        process after that has been told before: the form of a stage, or the program itself."""
        self._at(Stage.RUNTIME)  # eager's own time
        ref = self.reference(0)
        self._follow = False
        for stage in GRAPH_STAGES:
            self._at(stage)
            tell(self.found)
            outcome = self._form(compiled, stage)
            if outcome is None or isinstance(outcome.error, CannotRun):
                continue
            if not self.found.observations:
                if (
                    outcome.error is not None
                    and ref.eager.error is None
                    and self._observe_compile(compiled, outcome, ref)
                ):
                    return
                for one in GRAPH_STAGES:
                    if self._observable(one) and one not in self.found.observations:
                        self._observe(compiled, one)
                self._follow = False
                self._at(stage)
            if found := self._compared(stage, outcome, ref, []):
                self._blame(compiled.at_fault(stage, found, ref), [Finding(d.kind, LADDER, str(d)) for d in found[:3]])
                return
        self._at(Stage.RUNTIME)
        tell(self.found)
        self._runtime(compiled, self._program(compiled), ref)

    def _form(self, compiled: Compiled, stage: Stage) -> oracle.Outcome | None:
        """What the program as of a stage gives; None where there is no such form."""
        form = compiled.at(stage)
        return None if form is None else self.call(form, 0)

    def _program(self, compiled: Compiled) -> oracle.Outcome:
        return self.call(compiled, 0)

    def _first_call(self, compiled: Compiled) -> tuple[oracle.Outcome | None, oracle.Reference]:
        """Eager's answer, and the compiler's; None where what was compiled cannot be run here."""
        self._at(Stage.RUNTIME)  # eager's own time
        ref = self.reference(0)
        observable = self._observable(Stage.RUNTIME)
        if not observable and not compiled.compiles_at_call:
            return None, ref
        self._at(Stage.CAPTURE)
        first = self.call(compiled, 0)
        if isinstance(first.error, CannotRun):
            self.found.unavailable.setdefault(Stage.RUNTIME, first_line(first.error).removeprefix("CannotRun: "))
            return None, ref
        if not observable:  # what it computed is not looked at; that it was compiled, is
            return (first if first.error is not None else None), ref
        return first, ref

    def _observe_compile(self, compiled: Compiled, first: oracle.Outcome | None, ref: oracle.Reference) -> bool:
        """What the stages up to code generation showed. Returns whether the first call crashed: then nothing more can be seen."""
        error = first.error if first is not None else None
        crashed = compiled.blame(error) if error is not None else None
        for stage in GRAPH_STAGES:
            if self._observable(stage) and (crashed is None or stage.order <= crashed.order):
                self._observe(compiled, stage)
        if crashed is None or error is None:
            return False
        if crashed is Stage.RUNTIME:  # it compiled, so that its earlier forms can say where it went wrong
            crashed = self._first_wrong(compiled, 0, ref, [])[0]
        seen = self.found.at(crashed)
        excuse = seen.take_back()
        if seen.verdict is None:
            also = f" ({excuse})" if excuse else ""
            seen.findings.append(Finding(Kind.CRASH, LADDER, first_line(error) + also))
        return True

    def _recapture(self, compiled: Compiled) -> None:
        if Stage.CAPTURE in self.stages and Stage.CAPTURE in self.found.observations:
            self._at(Stage.CAPTURE)
            self._follow = False
            self.found[Stage.CAPTURE].facts |= compiled.recapture()

    def _observe(self, compiled: Compiled, stage: Stage) -> None:
        self._at(stage)
        self._follow = stage is not Stage.CACHE
        try:
            seen = compiled.observe(stage)
        except Exception as error:
            seen = _crash(error)
        self.found.observations[stage] = seen

    def _runtime(self, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        """The answer, then again: other values, the first ones once more, other sizes."""
        self._observe(compiled, Stage.RUNTIME)
        seen = self.found[Stage.RUNTIME]
        seen.facts |= oracle.signature(first) | {"mutates": oracle.mutated(first, self.case.inputs(0))}
        if not self.differs(compiled, 0, first, ref, "first call") and Stage.RUNTIME in self.stages:
            FurtherCalls(self, compiled, first, ref).make()


def _crash(error: BaseException) -> Observation:
    kind = Kind.TIMEOUT if isinstance(error, TimeoutError) else Kind.CRASH
    return Observation(findings=[Finding(kind, LADDER, first_line(error))])
