"""Compile a micrograph once, look at all stages, and say of each what is wrong."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance import checks, oracle
from conformance.backends.base import Backend, CannotRun, Case, Compiled
from conformance.baseline import Baseline
from conformance.cell import Cell
from conformance.errors import UsageError, first_line
from conformance.expectations import Expectations
from conformance.micrograph import Micrograph
from conformance.record import keep_text, without_folders
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Observation, Trace
from conformance.verdict import Finding, Kind, Verdict

FURTHER = 3  # calls with values of their own, after the first three
LADDER = "LAD001"  # the program as of a stage computes what eager computes


@dataclass
class Result:
    """What is recorded of one cell."""

    cell: Cell
    verdict: Verdict
    reason: str = ""
    findings: list[Finding] = field(default_factory=list)
    observation: Observation = field(default_factory=Observation)
    seconds: float = 0.0
    url: str = ""
    micrograph: str = ""

    def to_json(self, texts: Path | None = None) -> dict[str, Any]:
        line: dict[str, Any] = {
            "cell": str(self.cell),
            "verdict": self.verdict.value,
            "reason": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "observation": self.observation.facts,
            "seconds": round(self.seconds, 3),
            "micrograph": self.micrograph,
        }
        if texts is not None:
            line["texts"] = {name: keep_text(texts, without_folders(text)) for name, text in self.observation.texts.items() if text}
        if self.url:
            line["url"] = self.url
        return line


class Workbench:
    """Holds what all examinations share."""

    def __init__(self, expectations: Expectations, baseline: Baseline | None = None) -> None:
        self.expectations = expectations
        self.baseline = baseline

    def examine(
        self, micrograph: type[Micrograph], backend: Backend, target: Target, stages: Collection[Stage] = STAGES
    ) -> dict[Stage, Result]:
        """One compile; a result for each stage asked for."""
        if target.name not in backend.targets():
            known = ", ".join(backend.targets())
            return self._all(micrograph, backend, target, stages, Verdict.UNSUPPORTED, f"{backend.name} makes code for {known}")
        reasons = backend.unavailable(target)
        if all(stage in reasons for stage in stages):
            return {
                s: self._result(micrograph, backend, target, s, Verdict.UNAVAILABLE, reasons[s]) for s in sorted(stages, key=STAGES.index)
            }
        examination = Examination(Case(micrograph, target), backend, stages, reasons)
        trace = examination.trace()
        return self.judge(micrograph, backend, target, trace, reasons, stages)

    def judge(
        self,
        micrograph: type[Micrograph],
        backend: Backend,
        target: Target,
        trace: Trace,
        reasons: dict[Stage, str],
        stages: Collection[Stage],
    ) -> dict[Stage, Result]:
        """What a trace shows, as a result for each stage asked for."""
        results: dict[Stage, Result] = {}
        blocker: Result | None = None
        for stage in STAGES:
            if stage in reasons:
                result = self._result(micrograph, backend, target, stage, Verdict.UNAVAILABLE, reasons[stage])
            elif blocker is not None:
                result = self._blocked(micrograph, backend, target, stage, blocker)
            elif stage not in trace.observations:
                continue  # not asked for
            else:
                result = self.judged(Cell(stage, backend.name, target.name, micrograph.name()), micrograph, trace[stage])
                if result.verdict.blocks:
                    blocker = result
            results[stage] = result
        return {stage: results[stage] for stage in STAGES if stage in stages and stage in results}

    def judged(self, cell: Cell, micrograph: type[Micrograph], seen: Observation) -> Result:
        """What was seen of a cell, as a verdict: by checks, by the baseline, in the light of what is expected."""
        findings = list(seen.findings)
        if seen.verdict is None:
            findings += checks.findings(cell.stage, checks.Seen(seen, micrograph, cell.backend, cell.target))
            if self.baseline and not findings:
                findings += self.baseline.findings(cell, micrograph.digest(), seen.facts)
        verdict = seen.verdict or (Verdict.FAIL if findings else Verdict.PASS)
        if verdict is Verdict.FALLBACK and findings:  # what ran in its place is wrong: that is worse than not compiled
            verdict = Verdict.FAIL
        if seen.verdict is None and seen.facts.get("programs") == 0:
            verdict, seen.reason = Verdict.FALLBACK, "no program was generated: what ran was not compiled"
        if any(finding.kind is Kind.CRASH for finding in findings):
            verdict = Verdict.ERROR
        elif any(finding.kind is Kind.TIMEOUT for finding in findings):
            verdict = Verdict.TIMEOUT
        reason = seen.reason or "; ".join(finding.detail for finding in findings[:2])
        verdict, entry = self.expectations.judge(str(cell), verdict, findings)
        if entry is not None:
            reason = f"{entry.why}" + (f" ({reason})" if reason else "")
        result = Result(cell, verdict, reason, findings, seen, seen.seconds, entry.url if entry else "", micrograph.digest())
        return result

    def _blocked(self, micrograph: type[Micrograph], backend: Backend, target: Target, stage: Stage, blocker: Result) -> Result:
        if blocker.verdict is Verdict.UNSUPPORTED:
            return self._result(micrograph, backend, target, stage, Verdict.UNSUPPORTED, blocker.reason)
        reason = f"{blocker.cell.stage} {blocker.verdict}: {blocker.reason}"
        return self._result(micrograph, backend, target, stage, Verdict.BLOCKED, reason)

    def _result(
        self, micrograph: type[Micrograph], backend: Backend, target: Target, stage: Stage, verdict: Verdict, reason: str
    ) -> Result:
        cell = Cell(stage, backend.name, target.name, micrograph.name())
        return Result(cell, verdict, reason, micrograph=micrograph.digest())

    def _all(
        self, micrograph: type[Micrograph], backend: Backend, target: Target, stages: Collection[Stage], verdict: Verdict, reason: str
    ) -> dict[Stage, Result]:
        return {s: self._result(micrograph, backend, target, s, verdict, reason) for s in STAGES if s in stages}


class Examination:
    """The steps of one compile, in the order that disturbs it least."""

    def __init__(self, case: Case, backend: Backend, stages: Collection[Stage], reasons: dict[Stage, str]) -> None:
        self.case, self.backend, self.reasons = case, backend, reasons
        self.stages = {stage for stage in STAGES if stage in stages}
        self.module = case.module()
        self.random = case.micrograph.contract.runtime.random
        self.found: Trace = Trace(case.micrograph.name(), backend.name, case.target.name)

    def trace(self) -> Trace:
        try:
            compiled = self._opened()
        except UsageError:
            raise
        except Exception as error:
            self.found.observations[Stage.CAPTURE] = _crash(error)
            return self.found
        try:
            self._look(compiled)
        except UsageError:
            raise
        except Exception as error:
            self.found.observations.setdefault(self._at, Observation()).findings += _crash(error).findings
        finally:
            self._shut(compiled)
        return self.found

    def _opened(self) -> Compiled:
        return self.backend.compile(self.case)

    def _shut(self, compiled: Compiled) -> None:
        compiled.close()

    def _look(self, compiled: Compiled) -> None:
        self._compiled_module = compiled.module
        runs = Stage.RUNTIME not in self.reasons
        ref = self.reference(0)
        first = self.call(compiled, 0) if runs else None
        crashed = None
        if first is not None and first.error is not None and isinstance(first.error, CannotRun):
            self.reasons[Stage.RUNTIME] = first_line(first.error).removeprefix("CannotRun: ")
            runs, first = False, None
        elif first is not None and first.error is not None:
            crashed = compiled.blame(first.error)
        for stage in (Stage.CAPTURE, Stage.DECOMPOSITION, Stage.POSTGRAD, Stage.FUSION, Stage.CODEGEN):
            if stage not in self.reasons and (crashed is None or stage.order <= crashed.order):
                self._observe(compiled, stage)
        if crashed is not None:
            assert first is not None and first.error is not None
            if crashed is Stage.RUNTIME:  # it compiled, so that its earlier forms can say where it went wrong
                crashed = self._ladder(compiled, 0, ref)[0]
            seen = self.found.observations.setdefault(crashed, Observation())
            if seen.verdict is None:
                seen.findings.append(Finding(Kind.CRASH, LADDER, first_line(first.error)))
            return
        if runs:
            assert first is not None
            self._runtime(compiled, first, ref)
        else:
            self._climb(compiled, 0, ref)
        if self._wrong_already():
            return  # later stages will be blocked: do not spend time on them
        if Stage.CAPTURE in self.stages and Stage.CAPTURE in self.found.observations:
            start = time.perf_counter()
            self._at = Stage.CAPTURE
            capture = self.found[Stage.CAPTURE]
            capture.facts |= compiled.recapture()
            capture.seconds += time.perf_counter() - start
        if Stage.CACHE in self.stages and Stage.CACHE not in self.reasons and not self._wrong_already():
            self._observe(compiled, Stage.CACHE)

    def _wrong_already(self) -> bool:
        for stage, seen in self.found.observations.items():
            view = checks.Seen(seen, self.case.micrograph, self.backend.name, self.case.target.name)
            if seen.verdict or seen.findings or (stage not in self.reasons and checks.findings(stage, view)):
                return True
        return False

    # --------------------------------------------------------------------------------------- the steps

    def reference(self, seed: int, **sizes: int) -> oracle.Reference:
        fn = self.backend.eager(self.case, self.module)
        ref = oracle.reference(self.module, self.case.inputs(seed, **sizes), random=self.random, calls=self.case.micrograph.steps, fn=fn)
        if ref.eager.error is not None and self._ran_in_eager:
            raise RuntimeError(f"eager itself does not run any more: {first_line(ref.eager.error)}")
        if ref.eager.error is not None:
            raise UsageError(f"{self.case.micrograph.name()} does not run in eager: {first_line(ref.eager.error)}")
        self._ran_in_eager = True
        return ref

    def call(self, fn: Any, seed: int, **sizes: int) -> oracle.Outcome:
        module = fn.module if isinstance(fn, Compiled) else self._compiled_module
        return oracle.run(fn, self.case.inputs(seed, **sizes), module, calls=self.case.micrograph.steps)

    _compiled_module: Any = None
    _at = Stage.CAPTURE  # who is to blame for what nobody expected
    _ran_in_eager = False

    def _observe(self, compiled: Compiled, stage: Stage) -> None:
        start = time.perf_counter()
        try:
            seen = compiled.observe(stage)
        except Exception as error:
            seen = _crash(error)
        seen.seconds += time.perf_counter() - start
        self.found.observations[stage] = seen

    def _runtime(self, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        """The answer, then again: other values, the first ones once more, other sizes."""
        self._at = Stage.RUNTIME
        start = time.perf_counter()
        self._observe(compiled, Stage.RUNTIME)
        seen = self.found[Stage.RUNTIME]
        inputs = self.case.inputs(0)
        seen.facts |= oracle.signature(first) | {"mutates": oracle.mutated(first, inputs)}
        if self._differs(compiled, 0, first, ref, "first call"):
            return
        if Stage.RUNTIME in self.stages:
            ref1 = self.reference(1)
            second = self.call(compiled, 1)
            if self._differs(compiled, 1, second, ref1, "second call, other values"):
                return
            if compiled.survives:  # now: a third call with the first values would put them back
                seen.facts["overwritten"] = _overwritten(first, "first")
            before = compiled.compiles()
            if self._differs(compiled, 0, self.call(compiled, 0), ref, "third call, the first values again"):
                return
            if compiled.compiles() > before:
                self._recompiled("the third call, like the first", compiled.compiles() - before)
            if self._more_calls(compiled, first, second) or self._beside(compiled):
                return
            if self._replays(compiled) or self._ways(compiled, ref):
                return
            self._sizes(compiled)
            seen.facts |= compiled.afterwards()
        seen.seconds += time.perf_counter() - start

    def _more_calls(self, compiled: Compiled, first: oracle.Outcome, second: oracle.Outcome) -> bool:
        """What takes turns, or takes over after a while: storage of outputs, a variant of the program."""
        for seed in range(2, 2 + FURTHER):
            if self._differs(compiled, seed, self.call(compiled, seed), self.reference(seed), f"call {seed + 2}, other values"):
                return True
        if compiled.survives:
            self.found[Stage.RUNTIME].facts["overwritten"] += _overwritten(first, "first") + _overwritten(second, "second")
        return False

    def _beside(self, compiled: Compiled) -> bool:
        """Two calls, and only then the gradients of the first: what it saved for them must still be there."""
        inputs = self.case.inputs(0)
        if self.random or not compiled.survives or not any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            return False
        eager = Beside(self.backend.eager(self.case, self.module), self.case.inputs(1))
        ref = oracle.reference(self.module, inputs, random=True, calls=self.case.micrograph.steps, fn=eager)
        found = oracle.compare(self.call(Beside(compiled, self.case.inputs(1)), 0), ref)
        # Each call alone was right, so that no earlier form of the program is to blame.
        self.found[Stage.RUNTIME].findings += [Finding(d.kind, LADDER, f"gradients after another call: {d}") for d in found[:3]]
        return bool(found)

    def _replays(self, compiled: Compiled) -> bool:
        """Many more calls, each with values of its own, where what runs is a recording."""
        for seed in range(2, 2 + compiled.replays):
            if self._differs(compiled, seed, self.call(compiled, seed), self.reference(seed), f"replay {seed}", kind=Kind.REPLAY_MISMATCH):
                return True
        return False

    def _ways(self, compiled: Compiled, ref: oracle.Reference) -> bool:
        """The same call in other surroundings: on another stream, with memory handed out before."""
        for way, context in compiled.ways().items():
            with context():
                outcome = self.call(compiled, 0)
            if self._differs(compiled, 0, outcome, ref, way):
                return True
        return False

    def _sizes(self, compiled: Compiled) -> None:
        """Every size that a dynamic dim may take, by the same program."""
        for dim in self.case.micrograph.contract.capture.dynamic:
            size = self.case.micrograph.dims[dim]
            for seed, value in enumerate((size + 2, max(size - 1, 2), 2 * size + 1), 2):
                before = compiled.compiles()
                outcome = self.call(compiled, seed, **{dim: value})
                if self._differs(compiled, seed, outcome, self.reference(seed, **{dim: value}), f"{dim} = {value}", None, **{dim: value}):
                    return
                if compiled.compiles() > before:
                    self._recompiled(f"{dim} = {value}, though the dim was marked dynamic", compiled.compiles() - before)

    def _recompiled(self, when: str, count: int) -> None:
        """It is at runtime that a needless capture shows, but capturing is the capture stage's."""
        capture = self.found.observations.setdefault(Stage.CAPTURE, Observation())
        capture.facts.setdefault("recompiled_at", {})[when] = count

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
        """Does the outcome differ from eager? Then name the stage: the first whose program differs too."""
        differences = oracle.compare(outcome, ref)
        if not differences:
            return False
        stage, found = self._ladder(compiled, seed, ref, **sizes)
        seen = self.found.observations.setdefault(stage, Observation())
        seen.findings += [Finding((not found and kind) or d.kind, LADDER, f"{when}: {d}") for d in (found or differences)[:3]]
        return True

    def _climb(self, compiled: Compiled, seed: int, ref: oracle.Reference) -> None:
        """Where the program itself cannot run here, its earlier forms still can."""
        stage, found = self._ladder(compiled, seed, ref)
        if found:
            self.found.observations.setdefault(stage, Observation()).findings.extend(Finding(d.kind, LADDER, str(d)) for d in found[:3])

    def _ladder(self, compiled: Compiled, seed: int, ref: oracle.Reference, **sizes: int) -> tuple[Stage, list[oracle.Difference]]:
        for stage in STAGES[: Stage.RUNTIME.order]:
            program = compiled.at(stage)
            if program is None or stage not in self.found.observations:
                continue
            outcome = self.call(program, seed, **sizes)
            if isinstance(outcome.error, CannotRun):
                continue
            found = oracle.compare(outcome, ref, strides=stage is Stage.CODEGEN)
            if found and stage is Stage.CODEGEN and self._right_unfused(compiled, seed, ref, **sizes):
                return Stage.FUSION, found
            if found:
                return compiled.at_fault(stage, found, ref), found
        return Stage.RUNTIME, []

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


def _overwritten(outcome: oracle.Outcome, which: str) -> list[str]:
    """Outputs of an earlier call that a later one changed. What shares with the module's state moves with it."""
    lost = [d for d in oracle.survived(outcome) if not outcome.shares[int(d.where.split()[1])].startswith("state")]
    return [f"the {which} call's {difference}" for difference in lost]


def _crash(error: BaseException) -> Observation:
    kind = Kind.TIMEOUT if isinstance(error, TimeoutError) else Kind.CRASH
    return Observation(findings=[Finding(kind, LADDER, first_line(error))])
