"""Torch-TensorRT: engines for NVIDIA GPUs, real ones without a GPU where TensorRT-RTX builds them."""

from __future__ import annotations

from typing import Any

import torch

from conformance.backends.base import Backend, CannotRun, Case, Compiled, all_unavailable
from conformance.backends.torch_tensorrt import api
from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled
from conformance.backends.torch_tensorrt.installed import RTX, installed, missing
from conformance.stage import Stage
from conformance.target import DEVICES, Target
from conformance.trace import Observation
from conformance.verdict import Verdict

NO_GPU = "needs a CUDA device"
STANDARD_BUILDER = f"the builder of the standard TensorRT needs a CUDA device; {RTX} builds without one"


class TorchTensorRTBackend(Backend):
    name = "torch_tensorrt"

    def __init__(self) -> None:
        self.default_target = "cuda" if torch.cuda.is_available() else "sm_90"
        self._loaded = False

    def targets(self) -> tuple[str, ...]:
        return ("cuda", *DEVICES)

    def versions(self) -> dict[str, str]:
        found = installed()
        if found is None:
            return {}
        tensorrt = "tensorrt_rtx" if found.rtx else "tensorrt"
        return {"torch": torch.__version__, "torch_tensorrt": found.version, "flavour": found.flavour, tensorrt: found.tensorrt}

    def unavailable(self, target: Target) -> dict[Stage, str]:
        found = installed()
        if why := missing(found):
            return all_unavailable(why)
        assert found is not None
        if self._loaded and (why := api.broken()):  # importing it only to look would cost seconds
            return all_unavailable(why)
        if target.name == "cuda":
            return {} if torch.cuda.is_available() else all_unavailable(f"{NO_GPU}: without one, take a described one (--target sm_90)")
        if target.headless and not found.rtx:
            return dict.fromkeys((Stage.CODEGEN, Stage.CACHE), STANDARD_BUILDER) | {Stage.RUNTIME: NO_GPU}
        return {Stage.RUNTIME: NO_GPU} if target.headless else {}

    def compile(self, case: Case) -> Compiled:
        self._loaded = True
        if why := api.broken():
            return Unloaded(why)
        return TorchTensorRTCompiled(api.library(), case)


class Unloaded(Compiled):
    """Torch-TensorRT is installed, and cannot be imported or has moved what is looked at."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, *inputs: Any) -> Any:
        raise CannotRun(self.why)

    def observe(self, stage: Stage) -> Observation:
        return Observation.says(Verdict.UNAVAILABLE, self.why)
