"""The calls of a compiled program after a first one that was right: other values, the first ones again, replays, other surroundings, other
sizes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Compiled
from conformance.checks.measured import LADDER, REPLAYED
from conformance.ladder import Ladder
from conformance.replay import Replays
from conformance.stage import Stage
from conformance.verdict import Finding, Kind

FURTHER_CALLS = 3  # calls with values of their own, after the first three


class FurtherCalls:
    """One after the other, until a call differs from eager."""

    def __init__(self, ladder: Ladder, compiled: Compiled, first: oracle.Outcome, ref: oracle.Reference) -> None:
        self.ladder, self.compiled, self.first, self.ref = ladder, compiled, first, ref
        self.case, self.seen = ladder.case, ladder.found[Stage.RUNTIME]

    def make(self) -> None:
        compiled = self.compiled
        second = self._call(1)
        if self._differs(1, second, self.ladder.reference(1), "second call, other values"):
            return
        if compiled.outputs_persist:  # now: a third call with the first values would put them back
            self.seen.facts["overwritten"] = _overwritten(self.first, "first")
        before = compiled.compiles()
        if self._differs(0, self._call(0), self.ref, "third call, the first values again", self._when_replayed()):
            return
        if compiled.compiles() > before:
            self._recompiled("the third call, which is like the first", compiled.compiles() - before)
        if self._more_calls(second) or self._beside() or self._replays() or self._contexts():
            return
        self._sizes()
        self.seen.facts |= compiled.afterwards()

    def _more_calls(self, second: oracle.Outcome) -> bool:
        """What alternates, or takes over after a while: storage of outputs, a variant of the program."""
        for seed in range(2, 2 + FURTHER_CALLS):
            outcome, ref = self._call(seed), self.ladder.reference(seed)
            if self._differs(seed, outcome, ref, f"call {seed + 2}, other values", self._when_replayed()):
                return True
        if self.compiled.outputs_persist:
            self.seen.facts["overwritten"] += _overwritten(self.first, "first") + _overwritten(second, "second")
        return False

    def _beside(self) -> bool:
        """Two calls, and only then the gradients of the first: what it saved for them must still be there."""
        ladder, alone, inputs = self.ladder, self.ref, self.case.inputs(0)
        wants_grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        if ladder.random or not self.compiled.outputs_persist or not wants_grad:
            return False
        eager = Beside(ladder.backend.eager(self.case, ladder.module), self.case.inputs(1))
        ref = oracle.reference(ladder.module, inputs, random=True, calls=self.case.micrograph.steps, fn=eager)
        if alone.exact is not None:  # the same answer; its state is of one call, where two are made
            ref = oracle.Reference(ref.eager, replace(alone.exact, state={}))
        found = oracle.compare(ladder.call(Beside(self.compiled, self.case.inputs(1)), 0), ref)
        # Each call alone was right, so that no earlier form of the program is to blame.
        self.seen.findings += [Finding(d.kind, LADDER, f"gradients after another call: {d}") for d in found[:3]]
        return bool(found)

    def _replays(self) -> bool:
        """Many more calls where what runs is a recording: each with values of its own, and then as callers use one."""
        compiled = self.compiled
        for seed in range(2, 2 + compiled.replays):
            outcome, ref = self._call(seed), self.ladder.reference(seed)
            if self._differs(seed, outcome, ref, f"replay {seed}", Kind.REPLAY_MISMATCH):
                return True
        if not compiled.replays:
            return False
        replays = Replays(
            compiled, self.case, compiled.module, self.ladder.reference_of, compiled.next_call, compiled.outputs_persist
        )
        found = list(islice(replays.habits(), 3))
        # Calls with new inputs were right, so that no earlier form of the program is to blame.
        self.seen.findings += [
            Finding(Kind.REPLAY_MISMATCH, REPLAYED, f"{when}: {difference}") for when, difference in found
        ]
        return bool(found)

    def _contexts(self) -> bool:
        """The same call in other surroundings: on another stream, with inputs that arrive late."""
        for name, context in self.compiled.execution_contexts().items():
            with context():
                outcome = self._call(0)
            if self._differs(0, outcome, self.ref, name):
                return True
        return False

    def _sizes(self) -> None:
        """Every size that a dynamic dim may take, by the same program."""
        compiled = self.compiled
        for dim in self.case.micrograph.contract.capture.dynamic:
            size = self.case.micrograph.dims[dim]
            for seed, value in enumerate((size + 2, max(size - 1, 2), 2 * size + 1), 2):
                before = compiled.compiles()
                outcome, ref = self._call(seed, **{dim: value}), self.ladder.reference(seed, **{dim: value})
                if self._differs(seed, outcome, ref, f"{dim} = {value}", None, **{dim: value}):
                    return
                if compiled.compiles() > before:
                    when = f"{dim} = {value}, though the dim was marked dynamic"
                    self._recompiled(when, compiled.compiles() - before)

    def _call(self, seed: int, **sizes: int) -> oracle.Outcome:
        return self.ladder.call(self.compiled, seed, **sizes)

    def _differs(
        self,
        seed: int,
        outcome: oracle.Outcome,
        ref: oracle.Reference,
        when: str,
        kind: Kind | None = None,
        **sizes: int,
    ) -> bool:
        return self.ladder.differs(self.compiled, seed, outcome, ref, when, kind, **sizes)

    def _when_replayed(self) -> Kind | None:
        """What a difference is called from the third call on, where no earlier form of the program differs: by then a recording runs, if
        the backend makes one."""
        return Kind.REPLAY_MISMATCH if self.compiled.replays else None

    def _recompiled(self, when: str, count: int) -> None:
        """A needless capture shows at run time, but capturing is the capture stage's."""
        self.ladder.found.at(Stage.CAPTURE).facts.setdefault("recompiled_at", {})[when] = count


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
    """Outputs of an earlier call that a later one changed. What shares with the module's state changes with it."""
    lost = [d for d in oracle.survived(outcome) if not outcome.shares[int(d.where.split()[1])].startswith("state")]
    return [f"the {which} call's {difference}" for difference in lost]
