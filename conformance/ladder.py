"""Holds a compiled program against eager, and says which stage a difference belongs to.

The *ladder* runs the program as of each stage in place of the compiled one, and the first that differs is the stage at fault.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from conformance import oracle
from conformance.backends.base import Backend, CannotRun, Case, Compiled
from conformance.checks.measured import LADDER
from conformance.errors import NotInEager, first_line
from conformance.stage import STAGES, Stage
from conformance.trace import Trace
from conformance.verdict import Finding, Kind

GRAPH_STAGES = STAGES[: Stage.RUNTIME.order]


class Ladder:
    """A case in eager and compiled, and the trace in which a stage is blamed."""

    def __init__(self, case: Case, backend: Backend, stages: Collection[Stage] = STAGES) -> None:
        self.case, self.backend = case, backend
        self.stages = tuple(stage for stage in STAGES if stage in stages)
        self.module = case.module()
        self.random = case.micrograph.contract.runtime.random
        reasons = dict(backend.unavailable(case.target))
        self.found = Trace(case.micrograph.name(), backend.name, case.target.name, self.stages, unavailable=reasons)
        self._ran_in_eager = False
        self._compiled_module: Any = None

    def reference(self, seed: int, **sizes: int) -> oracle.Reference:
        return self.reference_of(self.case.inputs(seed, **sizes))

    def reference_of(self, inputs: tuple[Any, ...]) -> oracle.Reference:
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

    def differs(
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
        stage, found = self._first_wrong(compiled, seed, ref, differences, **sizes)
        details = [Finding((not found and kind) or d.kind, LADDER, f"{when}: {d}") for d in (found or differences)[:3]]
        self._blame(stage, details)
        return True

    def _climb(self, compiled: Compiled, seed: int, ref: oracle.Reference) -> None:
        """Where the program itself cannot run here, its earlier forms still can."""
        stage, found = self._first_wrong(compiled, seed, ref, [])
        if found:
            self._blame(stage, [Finding(d.kind, LADDER, str(d)) for d in found[:3]])

    def _blame(self, stage: Stage, findings: list[Finding]) -> None:
        seen = self.found.at(stage)
        seen.take_back()
        seen.findings += findings

    def _first_wrong(
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
