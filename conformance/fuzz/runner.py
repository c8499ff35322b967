"""Runs a drawn call on a backend and compares it with eager: each call is a compile of its own, watched at every stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Backend, Case
from conformance.errors import UsageError
from conformance.fuzz.coverage import Tally, counted
from conformance.fuzz.example import Call, Example
from conformance.fuzz.graph import Graph
from conformance.fuzz.judge import judged
from conformance.fuzz.known import Register
from conformance.fuzz.rejection import Rejected, cannot_run, declined, reference
from conformance.fuzz.strategies import Form, example_of, ops
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.target import CPU, Target
from conformance.trace import digest
from conformance.verdict import Kind


class Runner:
    """One micrograph on one backend and target; each example is a compile of its own, watched at every stage."""

    patience: float = 0.0  # seconds for one call; 0: as long as it takes
    register: Register | None = None  # of known defects

    def __init__(
        self, backend: Backend, target: Target, micrograph: type[Micrograph], tally: Tally, graph: Graph | None = None
    ) -> None:
        self.backend, self.target, self.micrograph, self.tally, self.graph = backend, target, micrograph, tally, graph
        self.source = graph.source() if graph is not None else ""
        self.ops: frozenset[str] = ops(micrograph)  # type: ignore[arg-type]
        self.history: list[Call] = []

    def example(self, form: Form, call: Call) -> Example:
        return example_of(self.micrograph, replace(form, dynamic=False), call, (), self.graph)

    def asked(self, call: Call) -> None:
        """On a GPU an index out of range costs the context, and with it the process: what eager takes is asked of the CPU first."""
        if self.target.name != "cuda":
            return
        case = Case(Example("", (call,), mutates=()).as_micrograph(self.micrograph), CPU)
        try:
            module, inputs = case.module(), call.inputs(self.micrograph)
        except UsageError as error:
            raise Rejected(str(error)) from None
        with torch.compiler.set_stance("force_eager"):
            outcome = oracle.run(module, inputs, module, calls=self.micrograph.steps)
        if outcome.error is not None:
            raise Rejected(f"{type(outcome.error).__name__}: {outcome.error}")

    def lost(self) -> bool:
        """Is the GPU's context gone? Then nothing that this process says is worth anything."""
        if self.target.name != "cuda":
            return False
        try:
            torch.cuda.synchronize()
        except Exception:
            return True
        return False

    def run(self, form: Form, call: Call) -> list[oracle.Difference]:
        """Where the backend differs from eager; empty when it is right."""
        self.asked(call)
        case = Case(self.example(form, call).as_micrograph(self.micrograph), self.target)
        module = case.module()
        ref = reference(module, case.inputs(), case, self.backend.eager(case, module))
        self.tally.examples += 1
        self.tally.compiles += 1
        self.history = [call]
        seen = Tally()
        try:
            with counted(seen):
                return self._compiled_and_run(case, ref)
        finally:
            self.tally.guards |= seen.guards
            self.tally.kernels |= seen.kernels

    def _compiled_and_run(self, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        try:
            compiled = self.backend.compile(case)
        except UsageError:
            raise
        except Exception as error:
            return self._crashed(error)
        try:
            return self._judge(compiled, case, ref)
        except Rejected:
            raise
        except Exception as error:
            return self._crashed(error)
        finally:
            compiled.close()

    def _crashed(self, error: Exception) -> list[oracle.Difference]:
        if declined(error):
            raise Rejected(f"{type(error).__name__}: {error}")
        return [crash(error)]

    def _judge(self, compiled: Any, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        outcome = oracle.run(compiled, case.inputs(), compiled.module, calls=case.micrograph.steps)
        if cannot_run(outcome.error):
            return self._earlier(compiled, case, ref)
        if declined(outcome.error):
            raise Rejected(f"{type(outcome.error).__name__}: {outcome.error}")
        return judged(outcome, ref, case.inputs(), eager=self._again(case), ops=self.ops)

    def _again(self, case: Case) -> Callable[[tuple[Any, ...]], oracle.Outcome]:
        module = case.module()
        eager = self.backend.eager(case, module)
        return lambda inputs: oracle.run(eager, inputs, module, calls=case.micrograph.steps)

    def _earlier(self, compiled: Any, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        """It was compiled and cannot run here: what it made can still be looked at, and earlier forms of it still run."""
        missing = self.backend.unavailable(self.target)
        for stage in STAGES[: Stage.RUNTIME.order]:
            if stage in missing:
                continue
            seen = compiled.observe(stage)
            if stage is Stage.CODEGEN:
                self.tally.kernels |= {digest(text) for text in seen.texts.values()}
            if seen.findings:
                return [oracle.Difference(f.kind, stage.value, f.detail) for f in seen.findings]
            program = compiled.at(stage)
            outcome = (
                oracle.run(program, case.inputs(), compiled.module, calls=case.micrograph.steps) if program else None
            )
            if outcome is None or cannot_run(outcome.error):
                continue
            if found := judged(outcome, ref, case.inputs(), False, self._again(case), self.ops):
                return found
        return []

    def known(self, call: Call, differences: Sequence[oracle.Difference]) -> bool:
        """Is all of it known already?"""
        return self.register is not None and self.register.explains(self.micrograph, self.source, call, differences)

    def static(self) -> tuple[str, ...]:
        """The dims of which every size costs a compile, where other sizes cost a run."""
        return ()

    def avoids(self, form: Form, call: Call) -> bool:
        """Is it known, before anything is run, that this call will be refused, or end the process?"""
        return self.register is not None and self.register.avoids(self.micrograph, self.source, call)

    def forget(self) -> None:
        """What was interrupted half-way is in no known state: begin anew."""

    def close(self) -> None:
        """Forget what was compiled."""


def crash(error: BaseException) -> oracle.Difference:
    text = str(error).strip().splitlines()
    return oracle.Difference(Kind.CRASH, "compile", f"{type(error).__name__}: {text[0][:300] if text else ''}")
