"""The runtime stage on a GPU: the ways in which a user runs a compiled module, each held against eager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.trace import Observation

if TYPE_CHECKING:
    from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled


def observe_runtime(compiled: TorchTensorRTCompiled) -> Observation:
    return Observation({"calls": "export"})
