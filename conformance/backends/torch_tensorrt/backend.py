"""Torch-TensorRT: engines for NVIDIA GPUs, real ones without a GPU where TensorRT-RTX builds them."""

from __future__ import annotations

from typing import Any

import torch

from conformance.backends.base import Backend, Case, Compiled, all_unavailable
from conformance.backends.torch_tensorrt.installed import RTX, Installed, installed, missing
from conformance.seam import Seam
from conformance.stage import STAGES, Stage
from conformance.target import DEVICES, Target

NO_GPU = "needs a CUDA device"
STANDARD_BUILDER = f"the builder of the standard TensorRT needs a CUDA device; {RTX} builds without one"


def not_here(found: Installed | None, target: Target) -> dict[Stage, str]:
    """The stages that cannot be observed with what is installed, and on this machine; the package is not imported for
    that."""
    if why := missing(found):
        return all_unavailable(why)
    if target.name == "cuda":
        return (
            {}
            if torch.cuda.is_available()
            else all_unavailable(f"{NO_GPU}: without one, take a described one (--target sm_90)")
        )
    if target.headless and found is not None and not found.rtx:
        return dict.fromkeys((Stage.CODEGEN, Stage.CACHE), STANDARD_BUILDER) | {Stage.RUNTIME: NO_GPU}
    return {Stage.RUNTIME: NO_GPU} if target.headless else {}


class TorchTensorRTBackend(Backend):
    name = "torch_tensorrt"
    package = "torch-tensorrt-rtx"

    def __init__(self) -> None:
        self.default_target = "cuda" if torch.cuda.is_available() else "sm_90"

    def targets(self) -> tuple[str, ...]:
        return ("cuda", *DEVICES)

    def versions(self) -> dict[str, str]:
        found = installed()
        if found is None:
            return {}
        tensorrt = "tensorrt_rtx" if found.rtx else "tensorrt"
        return {
            "torch": torch.__version__,
            "torch_tensorrt": found.version,
            "flavour": found.flavour,
            tensorrt: found.tensorrt,
        }

    def unavailable(self, target: Target) -> dict[Stage, str]:
        reasons = not_here(installed(), target)
        if len(reasons) == len(STAGES):
            return reasons
        from conformance.backends.torch_tensorrt.seam import not_importable, outside, seam

        if why := not_importable():
            return all_unavailable(why)
        return seam.unavailable() | outside.unavailable() | reasons

    def seams(self) -> tuple[Seam, ...]:
        if missing(installed()):
            return ()
        from conformance.backends.torch_tensorrt.seam import outside, seam

        return (seam, outside)

    def preload(self, target: Target) -> None:
        """Import the package. Building an engine starts no thread that outlives it and initializes no CUDA, so that
        processes can be forked afterwards."""
        from conformance.backends.torch_tensorrt import compiled  # noqa: F401
        from conformance.backends.torch_tensorrt.seam import not_importable

        not_importable()

    def trail(self, case: Case, held: Any) -> Any:
        from conformance.backends.torch_tensorrt.trail import TensorRTTrail

        return TensorRTTrail(self, case, held)

    def triage_adapter(self) -> Any:
        from conformance.backends.torch_tensorrt.script_rungs import TorchTensorRTAdapter

        return TorchTensorRTAdapter()

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        from conformance.backends.torch_tensorrt import repro

        return repro.entry(stage)

    def compile(self, case: Case) -> Compiled:
        from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

        return TorchTensorRTCompiled(case)
