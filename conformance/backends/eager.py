"""Eager itself, as a backend: the reference, and the proof that the suite passes what does nothing wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance import oracle, scenario
from conformance.backends.base import Backend, CannotRun, Case, Compiled
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Observation


class EagerBackend(Backend):
    name = "eager"
    variant_of = "eager"  # the reference, no compiler: a run that names no backend leaves it out

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda")

    def unavailable(self, target: Target) -> dict[Stage, str]:
        reasons: dict[Stage, str] = {stage: "eager does not compile" for stage in STAGES if stage is not Stage.RUNTIME}
        if target.name == "cuda" and not torch.cuda.is_available():
            reasons[Stage.RUNTIME] = "needs a CUDA device"
        return reasons

    def takes(self, micrograph: type[Micrograph]) -> bool:
        """Every micrograph runs in eager, whichever compiler it is for."""
        return True

    def compile(self, case: Case) -> Compiled:
        return EagerCompiled(case)


class EagerCompiled(Compiled):
    def __init__(self, case: Case) -> None:
        self.case, self.module = case, case.module()

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    @contextmanager
    def player(
        self, stage: Stage | None = None, *, unfused: bool = False, uncached: bool = False
    ) -> Iterator[tuple[Any, scenario.Run]]:
        """With a module of its own: a scenario may change more of it than can be put back."""
        module = self.case.module()
        with torch.compiler.set_stance("force_eager"):
            yield module, scenario.eager(module)

    def out_of_reach(self, error: BaseException) -> CannotRun | None:
        if not oracle.of_control_flow(error):
            return None
        return CannotRun("eager compiles its own control flow to differentiate it, and nothing is compiled here")

    def observe(self, stage: Stage) -> Observation:
        return Observation()
