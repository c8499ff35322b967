"""TensorRT-LLM's AutoDeploy: installed, standalone, or from a checkout that nobody built."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from conformance.backends.autodeploy.loader import Found, Missing, find, load
from conformance.backends.base import Backend, Case, Compiled, all_unavailable
from conformance.seam import Seam
from conformance.stage import Stage
from conformance.target import Target


class AutoDeployBackend(Backend):
    name = "autodeploy"
    repro_device = "cpu"  # its graph passes are held on the CPU
    package = ""

    def versions(self) -> dict[str, str]:
        try:
            found = find()
        except Missing:
            return {}
        return {"torch": torch.__version__, "autodeploy": found.version, "autodeploy_form": found.form}

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda")

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if self._missing:
            return all_unavailable(self._missing)
        if target.name == "cuda" and not torch.cuda.is_available():
            return all_unavailable("no GPU here: torch.cuda.is_available() is false; use --target cpu")
        reasons: dict[Stage, str] = {}
        if target.name == "cpu":
            reasons[Stage.CACHE] = (
                "torch-simple, the compile backend for the CPU, keeps no compiled program; needs a GPU"
            )
        for table in reversed(self.seams()):
            reasons |= table.unavailable()
        return reasons

    def seams(self) -> tuple[Seam, ...]:
        if self._missing:
            return ()
        from conformance.backends.autodeploy.seam import outside

        return (load().seam, outside)

    def preload(self, target: Target) -> None:
        """Import AutoDeploy, with all that it depends on, and register its transforms."""
        from conformance.backends.autodeploy import compiled, plan  # noqa: F401

        plan.configured(load(), plan.runnable(target)[0])

    def triage_adapter(self) -> Any:
        from conformance.backends.autodeploy.script_rungs import AutoDeployAdapter

        return AutoDeployAdapter()

    def trail(self, case: Case, held: Any) -> Any:
        from conformance.backends.autodeploy.trail import AutoDeployTrail

        return AutoDeployTrail(self, case, held)

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        from conformance.backends.autodeploy import repro

        return repro.entry(stage)

    def compile(self, case: Case) -> Compiled:
        from conformance.backends.autodeploy import plan
        from conformance.backends.autodeploy.compiled import AutoDeployCompiled
        from conformance.backends.autodeploy.passes import Passes

        passes = Passes(load())
        refused: dict[str, str] = {}
        *first, last = plan.runnable(case.target)
        for option in first:
            compiled = AutoDeployCompiled(passes, case, option, refused)
            if not compiled.refusal:
                return compiled
            refused[option] = compiled.refusal
            compiled.close()
        return AutoDeployCompiled(passes, case, last, refused)

    @cached_property
    def _missing(self) -> str:
        """Why there is no AutoDeploy here; importing it is the only way to know that nothing is missing."""
        try:
            load()
        except Missing as error:
            return str(error)
        return ""

    @property
    def found(self) -> Found:
        return find()
