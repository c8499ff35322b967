"""Measure: compile a micrograph once and write down what every stage showed. What is right or wrong about it is judged elsewhere.

    trace = examine(Case(micrograph, target), backend, stages)

The only thing that is decided here is which stage a difference from eager belongs to: the *ladder* runs the program as of each stage
in place of the compiled one, and the first that differs is the stage at fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Backend, CannotRun, Case, Compiled
from conformance.checks.measured import LADDER, REPLAYED
from conformance.errors import NotInEager, UsageError, first_line
from conformance.replay import Replays
from conformance.stage import STAGES, Stage
from conformance.trace import Observation, Trace
from conformance.verdict import Finding, Kind

FURTHER_CALLS = 3  # calls with values of their own, after the first three
GRAPH_STAGES = STAGES[: Stage.RUNTIME.order]

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


class Examination:
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
        self.case, self.backend, self.stop, self.progress, self.careful = case, backend, stop, progress, careful
        self.stages = tuple(stage for stage in STAGES if stage in stages)
        self.module = case.module()
        self.random = case.micrograph.contract.runtime.random
        reasons = dict(backend.unavailable(case.target))
        self.found = Trace(case.micrograph.name(), backend.name, case.target.name, self.stages, unavailable=reasons)
        self._ran_in_eager = False
        self._compiled_module: Any = None
        self._working_on, self._since = Stage.CAPTURE, time.perf_counter()
        self._times: dict[Stage, float] = {}
        self._follow = (
            True  # is a stage that the compiler comes to the one that is worked on? Not while probes compile again
        )

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
            crashed = self._ladder(compiled, 0, ref, [])[0]
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

    def reference(self, seed: int, **sizes: int) -> oracle.Reference:
        return self._reference_of(self.case.inputs(seed, **sizes))

    def _reference_of(self, inputs: tuple[Any, ...]) -> oracle.Reference:
        fn = self.backend.eager(self.case, self.module)
        ref = oracle.reference(self.module, inputs, random=self.random, calls=self.case.micrograph.steps, fn=fn)
        if ref.eager.error is not None and self._ran_in_eager:
            raise RuntimeError(f"eager itself does not run any more: {first_line(ref.eager.error)}")
        if ref.eager.error is not None:
            raise NotInEager(f"eager itself does not run it: {first_line(ref.eager.error)}")
        self._ran_in_eager = True
        return ref

    def call(self, fn: Any, seed: int, **sizes: int) -> oracle.Outcome:
        module = fn.module if isinstance(fn, Compiled) else self._compiled_module
        return oracle.run(fn, self.case.inputs(seed, **sizes), module, calls=self.case.micrograph.steps)

    def _observe(self, compiled: Compiled, stage: Stage) -> None:
        self._at(stage)
        self._follow = stage is not Stage.CACHE
        try:
            seen = compiled.observe(stage)
        except Exception as error:
            seen = _crash(error)
        self.found.observations[stage] = seen

    # ------------------------------------------------------------------------------------------------ runtime

    def _runtime(self, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        """The answer, then again: other values, the first ones once more, other sizes."""
        self._observe(compiled, Stage.RUNTIME)
        seen = self.found[Stage.RUNTIME]
        seen.facts |= oracle.signature(first) | {"mutates": oracle.mutated(first, self.case.inputs(0))}
        if not self._differs(compiled, 0, first, ref, "first call") and Stage.RUNTIME in self.stages:
            self._further_calls(compiled, first, ref)

    def _further_calls(self, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        seen = self.found[Stage.RUNTIME]
        second = self.call(compiled, 1)
        if self._differs(compiled, 1, second, self.reference(1), "second call, other values"):
            return
        if compiled.outputs_persist:  # now: a third call with the first values would put them back
            seen.facts["overwritten"] = _overwritten(first, "first")
        before = compiled.compiles()
        if self._differs(
            compiled, 0, self.call(compiled, 0), ref, "third call, the first values again", _when_replayed(compiled)
        ):
            return
        if compiled.compiles() > before:
            self._recompiled("the third call, which is like the first", compiled.compiles() - before)
        if self._more_calls(compiled, first, second) or self._beside(compiled, ref):
            return
        if self._replays(compiled) or self._contexts(compiled, ref):
            return
        self._sizes(compiled)
        seen.facts |= compiled.afterwards()

    def _more_calls(self, compiled: Compiled, first: oracle.Outcome, second: oracle.Outcome) -> bool:
        """What alternates, or takes over after a while: storage of outputs, a variant of the program."""
        for seed in range(2, 2 + FURTHER_CALLS):
            outcome, ref = self.call(compiled, seed), self.reference(seed)
            if self._differs(compiled, seed, outcome, ref, f"call {seed + 2}, other values", _when_replayed(compiled)):
                return True
        if compiled.outputs_persist:
            self.found[Stage.RUNTIME].facts["overwritten"] += _overwritten(first, "first") + _overwritten(
                second, "second"
            )
        return False

    def _beside(self, compiled: Compiled, alone: oracle.Reference) -> bool:
        """Two calls, and only then the gradients of the first: what it saved for them must still be there."""
        inputs = self.case.inputs(0)
        wants_grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        if self.random or not compiled.outputs_persist or not wants_grad:
            return False
        eager = Beside(self.backend.eager(self.case, self.module), self.case.inputs(1))
        ref = oracle.reference(self.module, inputs, random=True, calls=self.case.micrograph.steps, fn=eager)
        if alone.exact is not None:  # the same answer; its state is of one call, where two are made
            ref = oracle.Reference(ref.eager, replace(alone.exact, state={}))
        found = oracle.compare(self.call(Beside(compiled, self.case.inputs(1)), 0), ref)
        # Each call alone was right, so that no earlier form of the program is to blame.
        runtime = self.found[Stage.RUNTIME]
        runtime.findings += [Finding(d.kind, LADDER, f"gradients after another call: {d}") for d in found[:3]]
        return bool(found)

    def _replays(self, compiled: Compiled) -> bool:
        """Many more calls where what runs is a recording: each with values of its own, and then as callers use one."""
        for seed in range(2, 2 + compiled.replays):
            outcome, ref = self.call(compiled, seed), self.reference(seed)
            if self._differs(compiled, seed, outcome, ref, f"replay {seed}", kind=Kind.REPLAY_MISMATCH):
                return True
        if not compiled.replays:
            return False
        replays = Replays(
            compiled, self.case, compiled.module, self._reference_of, compiled.next_call, compiled.outputs_persist
        )
        found = list(islice(replays.habits(), 3))
        # Calls with new inputs were right, so that no earlier form of the program is to blame.
        self.found[Stage.RUNTIME].findings += [
            Finding(Kind.REPLAY_MISMATCH, REPLAYED, f"{when}: {difference}") for when, difference in found
        ]
        return bool(found)

    def _contexts(self, compiled: Compiled, ref: oracle.Reference) -> bool:
        """The same call in other surroundings: on another stream, with inputs that arrive late."""
        for name, context in compiled.execution_contexts().items():
            with context():
                outcome = self.call(compiled, 0)
            if self._differs(compiled, 0, outcome, ref, name):
                return True
        return False

    def _sizes(self, compiled: Compiled) -> None:
        """Every size that a dynamic dim may take, by the same program."""
        for dim in self.case.micrograph.contract.capture.dynamic:
            size = self.case.micrograph.dims[dim]
            for seed, value in enumerate((size + 2, max(size - 1, 2), 2 * size + 1), 2):
                before = compiled.compiles()
                outcome, ref = self.call(compiled, seed, **{dim: value}), self.reference(seed, **{dim: value})
                if self._differs(compiled, seed, outcome, ref, f"{dim} = {value}", None, **{dim: value}):
                    return
                if compiled.compiles() > before:
                    self._recompiled(
                        f"{dim} = {value}, though the dim was marked dynamic", compiled.compiles() - before
                    )

    def _recompiled(self, when: str, count: int) -> None:
        """A needless capture shows at run time, but capturing is the capture stage's."""
        self.found.at(Stage.CAPTURE).facts.setdefault("recompiled_at", {})[when] = count

    # ------------------------------------------------------------------------------------------------- ladder

    def _differs(
        self,
        compiled: Compiled,
        seed: int,
        outcome: oracle.Outcome,
        ref: oracle.Reference,
        when: str,
        kind: Kind | None = None,
        **sizes: int,
    ) -> bool:
        """Does the outcome differ from eager? Then the first stage whose program differs too is at fault."""
        differences = oracle.compare(outcome, ref)
        if not differences:
            return False
        stage, found = self._ladder(compiled, seed, ref, differences, **sizes)
        details = [Finding((not found and kind) or d.kind, LADDER, f"{when}: {d}") for d in (found or differences)[:3]]
        self._blame(stage, details)
        return True

    def _climb(self, compiled: Compiled, seed: int, ref: oracle.Reference) -> None:
        """Where the program itself cannot run here, its earlier forms still can."""
        stage, found = self._ladder(compiled, seed, ref, [])
        if found:
            self._blame(stage, [Finding(d.kind, LADDER, str(d)) for d in found[:3]])

    def _blame(self, stage: Stage, findings: list[Finding]) -> None:
        seen = self.found.at(stage)
        seen.take_back()
        seen.findings += findings

    def _ladder(
        self, compiled: Compiled, seed: int, ref: oracle.Reference, wrong: list[oracle.Difference], **sizes: int
    ) -> tuple[Stage, list[oracle.Difference]]:
        """The first stage whose program differs from eager, and in what; the runtime stage if none of the earlier ones does. `wrong` is how
        the compiled program differs, as far as it could run."""
        for stage in GRAPH_STAGES:
            program = compiled.at(stage)
            if program is None or stage not in self.found.observations:
                continue
            outcome = self.call(program, seed, **sizes)
            if isinstance(outcome.error, CannotRun):
                continue
            found = self._compared(stage, outcome, ref, wrong)
            if found and stage is Stage.CODEGEN and self._right_unfused(compiled, seed, ref, **sizes):
                return Stage.FUSION, found
            if found:
                return compiled.at_fault(stage, found, ref), found
        return Stage.RUNTIME, []

    def _compared(
        self, stage: Stage, outcome: oracle.Outcome, ref: oracle.Reference, wrong: list[oracle.Difference]
    ) -> list[oracle.Difference]:
        """How what a stage gave differs from eager: the generated program wholly, an earlier form as far as it answers for the program."""
        return oracle.compare(outcome, ref) if stage is Stage.CODEGEN else oracle.compare_form(outcome, ref, wrong)

    def _right_unfused(self, compiled: Compiled, seed: int, ref: oracle.Reference, **sizes: int) -> bool:
        program = compiled.unfused()
        if program is not None and sizes:
            self.call(program, 0)  # a program that was made for the first sizes is what went wrong at these
        return program is not None and not oracle.compare(self.call(program, seed, **sizes), ref)


class Beside:
    """A call with another one right after it; the answer is the first one's."""

    def __init__(self, fn: Any, others: tuple[Any, ...]) -> None:
        self.fn, self.others = fn, others
        self.around_backward = getattr(fn, "around_backward", nullcontext)

    def __call__(self, *inputs: Any) -> Any:
        result = self.fn(*inputs)
        self.kept = self.fn(*self.others)
        return result


def _when_replayed(compiled: Compiled) -> Kind | None:
    """What a difference is called from the third call on, where no earlier form of the program differs: by then a recording runs, if the
    backend makes one."""
    return Kind.REPLAY_MISMATCH if compiled.replays else None


def _overwritten(outcome: oracle.Outcome, which: str) -> list[str]:
    """Outputs of an earlier call that a later one changed. What shares with the module's state changes with it."""
    lost = [d for d in oracle.survived(outcome) if not outcome.shares[int(d.where.split()[1])].startswith("state")]
    return [f"the {which} call's {difference}" for difference in lost]


def _crash(error: BaseException) -> Observation:
    kind = Kind.TIMEOUT if isinstance(error, TimeoutError) else Kind.CRASH
    return Observation(findings=[Finding(kind, LADDER, first_line(error))])
