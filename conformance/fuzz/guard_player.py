"""Plays a sequence of calls against the model of captures.

A capture that the model did not expect is an extra recompile; one that it expected and did not see is a missed one; an answer
that is not eager's is wrong whatever the model says. With a backend that compiles nothing a call costs a capture alone; with
the compiler itself its caches are held to the model as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.backends.inductor import cache_stage
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.compiled import empty_caches
from conformance.backends.inductor.guard_probes import Counting
from conformance.backends.inductor.seam import seam
from conformance.errors import UsageError
from conformance.fuzz.example import RESTART, STANCES, Call, Example
from conformance.fuzz.guard_model import Cached, Model, numbers_of, predictable
from conformance.fuzz.rejection import overlaps
from conformance.fuzz.served import own_code
from conformance.fuzz.watchdog import Hung, limited
from conformance.micrograph import Micrograph
from conformance.target import CPU
from conformance.verdict import Finding, Kind

COMPILED = "guards, compiled"
CHECK = "FUZ001"  # captures again exactly when the model says
Door = Callable[..., Any]


@contextmanager
def mode(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        if name == "grad":
            stack.enter_context(torch.enable_grad())
        elif name == "autocast":
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        elif name == "inference":
            stack.enter_context(torch.inference_mode())
        yield


class Player:
    """One compiled micrograph, called in sequence; it knows how often it was captured."""

    patience: float = 0.0  # seconds for one call
    journal: Callable[[Example], None] = staticmethod(
        lambda example: None
    )  # told of each sequence before its last call

    def __init__(
        self, micrograph: type[Micrograph], door: Door | None = None, limit: int = 8, compiled: bool = False
    ) -> None:
        self.micrograph, self.limit, self.compiled = micrograph, limit, compiled
        self.model = self._model()
        self.stack = ExitStack()
        self.cached = None
        if compiled:
            folder = self.stack.enter_context(
                tempfile.TemporaryDirectory(prefix="conformance-guards-", ignore_cleanup_errors=True)
            )
            self.stack.enter_context(empty_caches(Path(folder)))
            self.cached = Cached(micrograph.contract.cache.cacheable)
        self.counting = Counting()
        self.case = Case(micrograph, CPU)
        self.modules = micrograph.build(), micrograph.build()
        self.own = door is None
        door = door or (lambda fn: torch.compile(fn, backend=self.counting))
        self.fn = door(own_code(self.modules[1]))
        self.calls: list[Call] = []

    def close(self) -> None:
        self.stack.close()

    def _model(self) -> Model:
        return Model(self.micrograph, self.limit, loose=not predictable(self.micrograph))

    def play(self, call: Call) -> Finding | None:
        """Make the call; None, or what is wrong."""
        ref = self._reference(call)
        if ref is None:
            return None
        self.calls.append(call)
        self.journal(self.example())
        if call.stance == RESTART:
            seam.reset()
            self.model = self._model()
        try:
            with limited(self.patience):
                wrong = self._under_stance(call, ref) if call.stance in STANCES else self._plainly(call, ref)
        except Hung as hung:
            wrong = Kind.TIMEOUT, str(hung)
        return Finding(wrong[0], CHECK, f"call {len(self.calls)}, {shown(call)}: {wrong[1]}") if wrong else None

    def _plainly(self, call: Call, ref: oracle.Reference) -> tuple[Kind, str] | None:
        expected = self.model.expects(call)
        outcome, seen, counted = self._counted(call)
        capture = self.model.saw(call, seen)
        if (wrong := oracle.compare(outcome, ref)) and not self._contradicted(call, ref):
            return wrong[0].kind, str(wrong[0])
        if expected == "no" and seen:
            return Kind.EXTRA_RECOMPILE, "captured again, though an earlier capture takes it"
        if expected == "yes" and not seen:
            return Kind.MISSED_RECOMPILE, "not captured again"
        return self.cached.judge(capture, counted) if self.cached and capture and seen == 1 else None

    def _under_stance(self, call: Call, ref: oracle.Reference) -> tuple[Kind, str] | None:
        """Nothing may be captured. What needs a capture is eager's, or refused where the stance says so."""
        expected = self.model.expects(call)
        with torch.compiler.set_stance(call.stance):  # type: ignore[arg-type]
            outcome, seen, _ = self._counted(call)
        if seen:
            return Kind.EXTRA_RECOMPILE, f"captured although the stance is {call.stance}"
        if call.stance == "fail_on_recompile" and not self.model.exhausted():
            if outcome.error is not None and "fail_on_recompile" in str(outcome.error):
                return (
                    (Kind.EXTRA_RECOMPILE, "refused, though an earlier capture takes it") if expected == "no" else None
                )
            if expected == "yes" and outcome.error is None:
                return Kind.MISSED_RECOMPILE, "not refused, though it needs a capture"
        elif call.stance == "fail_on_recompile" and outcome.error is not None:
            return None
        wrong = oracle.compare(outcome, ref)
        return (wrong[0].kind, str(wrong[0])) if wrong and not self._contradicted(call, ref) else None

    def _counted(self, call: Call) -> tuple[oracle.Outcome, int, dict[str, int]]:
        before = self.captures()
        with _limit(self.limit), cache_stage.counted() as counted:
            outcome = self._run(lambda *x: self.fn(*InductorBackend().marked(self.case, x)), call, self.modules[1])
        return outcome, self.captures() - before, counted

    def captures(self) -> int:
        """By our own backend; where another one compiles, by Dynamo's counter."""
        return self.counting.count if self.own else int(seam.counters["stats"].get("unique_graphs", 0))

    def example(self) -> Example:
        return Example(
            self.micrograph.name(), tuple(self.calls), about=COMPILED if self.compiled else "guards", limit=self.limit
        )

    def _reference(self, call: Call) -> oracle.Reference | None:
        try:
            given = call.inputs(self.micrograph)
        except UsageError:
            return None  # it shares a storage that is too small for this layout
        eager = self._run(self.modules[0], call, self.modules[0])
        if eager.error is not None:
            return None
        if any(overlaps(given[index]) for index in oracle.mutated(eager, given)):
            return None  # which of two writes to one place is the last is not specified
        if (
            not self.compiled
        ):  # the captured graph is run by eager's own kernels: the same answer, and no fp64 needed to judge it
            return oracle.Reference(eager, None)
        with self._cast(call, self.modules[0]):
            exact = oracle.in_double(self.modules[0], call.inputs(self.micrograph), calls=self.micrograph.steps)
        return oracle.Reference(
            eager, exact if exact is not None and len(exact.outputs) == len(eager.outputs) else None
        )

    def _contradicted(self, call: Call, ref: oracle.Reference) -> bool:
        """Does eager give another answer when it is asked again?"""
        again = [self._run(self.modules[0], call, self.modules[0]) for _ in range(2)]
        return any(oracle.compare(outcome, ref) for outcome in again)

    def _run(self, fn: Callable[..., Any], call: Call, module: Any) -> oracle.Outcome:
        def inside(*inputs: Any) -> Any:
            with mode(call.mode):
                return fn(*inputs)

        with self._cast(call, module):
            return oracle.run(inside, call.inputs(self.micrograph), module, calls=self.micrograph.steps)

    @contextmanager
    def _cast(self, call: Call, module: Any) -> Iterator[None]:
        if call.dtype:
            module.to(getattr(torch, call.dtype))
        try:
            yield
        finally:
            if call.dtype:
                module.float()


@contextmanager
def _limit(count: int) -> Iterator[None]:
    with seam.dynamo_config.patch(recompile_limit=count):
        yield


def shown(call: Call) -> str:
    parts = [f"{name}={size}" for name, size in numbers_of(call).items()]
    parts += [word for word in (call.dtype, call.mode, call.stance) if word]
    parts += [f"input {i} {g.layout}" for i, g in enumerate(call.given) if g.layout != "contiguous"]
    return " ".join(parts) or "as declared"
