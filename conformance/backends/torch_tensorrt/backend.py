"""Torch-TensorRT: engines for NVIDIA GPUs, real ones without a GPU where TensorRT-RTX builds them."""

from __future__ import annotations

import sys

import torch

from conformance.backends.base import Backend, Case, Compiled, nowhere
from conformance.backends.torch_tensorrt import api
from conformance.backends.torch_tensorrt.installed import RTX, installed, missing
from conformance.errors import UsageError
from conformance.stage import Stage
from conformance.target import DEVICES, Target

NO_GPU = "needs a CUDA device"
STANDARD_BUILDER = f"the builder of the standard TensorRT needs a CUDA device; {RTX} builds without one"


class TorchTensorRTBackend(Backend):
    name = "torch_tensorrt"

    def targets(self) -> tuple[str, ...]:
        return ("cuda", *DEVICES)

    def versions(self) -> dict[str, str]:
        found = installed()
        if found is None:
            return {}
        return {"torch": torch.__version__, found.flavour: found.version, "tensorrt_rtx" if found.rtx else "tensorrt": found.tensorrt}

    def unavailable(self, target: Target) -> dict[Stage, str]:
        found = installed()
        if why := missing(found):
            return nowhere(why)
        assert found is not None
        if "torch_tensorrt" in sys.modules:  # importing it only to look would cost seconds
            try:
                api.library()
            except (api.Moved, api.Unloadable) as error:
                return nowhere(str(error))
        if target.name == "cuda":
            return {} if torch.cuda.is_available() else nowhere(f"{NO_GPU}: without one, take a described one (--target sm_90)")
        if target.headless and not found.rtx:
            return dict.fromkeys((Stage.CODEGEN, Stage.CACHE), STANDARD_BUILDER) | {Stage.RUNTIME: NO_GPU}
        return {Stage.RUNTIME: NO_GPU} if target.headless else {}

    def compile(self, case: Case) -> Compiled:
        from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

        try:
            library = api.library()
        except (api.Moved, api.Unloadable) as error:
            raise UsageError(str(error)) from None
        return TorchTensorRTCompiled(library, case)
