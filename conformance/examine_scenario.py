"""Measure a scenario: play it with eager and with the compiler from equal starting points, and find the stage of what differs.

Every play has a module and inputs of its own, so that what one play does to them no other play sees. The ladder plays the whole
scenario again with the program as of each stage. What is right with caches turned off, and wrong with them, is the cache stage's.
"""

from __future__ import annotations

from typing import Any

from conformance import oracle, scenario
from conformance.backends.base import CannotRun, Compiled
from conformance.errors import NotInEager, first_line
from conformance.examine import Examination
from conformance.ladder import GRAPH_STAGES
from conformance.stage import STAGES, Stage

SEEDS = (0, 1)  # the scenario is played with two sets of values


class ScenarioExamination(Examination):
    """An examination whose every call is a play."""

    _only_elsewhere = False  # all that was compiled was compiled in other processes, where nobody watches the stages

    def reference(self, seed: int, **sizes: int) -> oracle.Reference:
        ref = oracle.played(self.case.module, lambda: self.case.inputs(seed, **sizes), self._eager_run, self.random)
        raises = self.case.micrograph.contract.runtime.raises
        if ref.eager.error is not None and not raises:
            raise NotInEager(f"eager itself does not play it: {first_line(ref.eager.error)}")
        if ref.eager.error is None and raises:
            raise NotInEager("the contract says that eager raises, and here it does not")
        return ref

    def _eager_run(self, module: Any) -> scenario.Run:
        return scenario.eager(self.backend.eager(self.case, module))

    def _play(self, compiled: Compiled, seed: int, stage: Stage | None = None, **how: bool) -> oracle.Outcome:
        """A play with the program, or with its form as of an earlier stage."""
        with compiled.player(stage, **how) as (module, run):
            outcome = oracle.play(module, run, self.case.inputs(seed))
        if outcome.error is not None and (beyond := compiled.out_of_reach(outcome.error)):
            outcome.error = beyond
        self._only_elsewhere = run.went_elsewhere and not compiled.compiles()
        return outcome

    def _form(self, compiled: Compiled, stage: Stage) -> oracle.Outcome | None:
        return self._play(compiled, SEEDS[0], stage) if compiled.plays_at(stage) else None

    def _program(self, compiled: Compiled) -> oracle.Outcome:
        return self._play(compiled, SEEDS[0])

    def _first_call(self, compiled: Compiled) -> tuple[oracle.Outcome | None, oracle.Reference]:
        self._at(Stage.RUNTIME)  # eager's own time
        ref = self.reference(SEEDS[0])
        if not self._observable(Stage.RUNTIME) and not compiled.compiles_at_call:
            return None, ref
        self._at(Stage.CAPTURE)
        first = self._play(compiled, SEEDS[0])
        if not self._observable(Stage.RUNTIME):
            return (first if first.error is not None else None), ref
        if isinstance(first.error, CannotRun):
            reason = first_line(first.error).partition(": ")[2]
            lost = (Stage.RUNTIME, Stage.CACHE) if compiled.compiles() else STAGES
            self.found.unavailable |= dict.fromkeys(lost, reason)
            return None, ref
        return first, ref

    def _observe_compile(self, compiled: Compiled, first: oracle.Outcome | None, ref: oracle.Reference) -> bool:
        """An error that eager raises as well is no crash. Stages that the program did not come to cannot be observed."""
        if self._only_elsewhere:
            reasons = dict.fromkeys(GRAPH_STAGES, "the scenario compiles in other processes only")
            self.found.unavailable |= reasons | self.found.unavailable
        if first is None or first.error is None or ref.eager.error is None:
            return super()._observe_compile(compiled, first, ref)
        refused = compiled.blame(first.error)
        for stage in GRAPH_STAGES:
            if stage.order > refused.order:
                self.found.unavailable.setdefault(
                    stage, f"the compiler refuses the program in {refused}, as eager does"
                )
            elif self._observable(stage):
                self._observe(compiled, stage)
        return False

    def _runtime(self, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        self._observe(compiled, Stage.RUNTIME)
        seen = self.found[Stage.RUNTIME]
        seen.facts |= oracle.signature(first)
        for seed in SEEDS:
            outcome, ref = (first, ref) if seed == SEEDS[0] else (self._play(compiled, seed), self.reference(seed))
            if self.differs(compiled, seed, outcome, ref, f"play {seed + 1}"):
                return

    def _recapture(self, compiled: Compiled) -> None:
        """Scenarios say themselves what must be captured again."""

    def _climb(self, compiled: Compiled, seed: int, ref: oracle.Reference) -> None:
        """A program that cannot be played as it is cannot be played in its earlier forms either."""

    def _first_wrong(
        self, compiled: Compiled, seed: int, ref: oracle.Reference, wrong: list[oracle.Difference], **sizes: int
    ) -> tuple[Stage, list[oracle.Difference]]:
        """The first stage whose form of the program differs from eager over the whole scenario."""
        for stage in GRAPH_STAGES:
            if stage not in self.found.observations or not compiled.plays_at(stage):
                continue
            outcome = self._play(compiled, seed, stage)
            if isinstance(outcome.error, CannotRun):
                continue
            found = self._compared(stage, outcome, ref, wrong)
            if found and stage is Stage.CODEGEN and not oracle.compare(self._play(compiled, seed, unfused=True), ref):
                return Stage.FUSION, found
            if found:
                return compiled.at_fault(stage, found, ref), found
        if compiled.plays_at(Stage.CACHE) and not oracle.compare(self._play(compiled, seed, uncached=True), ref):
            return Stage.CACHE, []
        return Stage.RUNTIME, []
