"""One run of `torch_tensorrt.dynamo.compile`, as every part of the backend starts it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from conformance.backends.base import Case
from conformance.backends.torch_tensorrt.capture import Captured, capture
from conformance.backends.torch_tensorrt.compile_log import CompileLog
from conformance.backends.torch_tensorrt.instrument import Instrument
from conformance.backends.torch_tensorrt.seam import seam
from conformance.stage import Stage

# A micrograph has a few ops, and the default leaves blocks of fewer than five to PyTorch. TF32 is a choice about
# precision that the user makes, not an error of the compiler: off, as eager has it.
SETTINGS: dict[str, Any] = {"min_block_size": 1, "disable_tf32": True}


@dataclass
class Compilation:
    """The module that is compiled for a case, and the log of its compile. An exception of the compiler's is kept in the
    log."""

    case: Case
    module: nn.Module
    log: CompileLog = field(default_factory=CompileLog)
    captured: Captured | None = None

    def run(self, **settings: Any) -> None:
        """Compile. Raises what the compiler raises."""
        started = time.perf_counter()
        self.captured = capture(self.case, self.module, seam.package)
        self.log.exported = self.captured.program
        self.log.seconds[Stage.CAPTURE] = time.perf_counter() - started
        with Instrument(self.case.target, self.log, self.module).watching(), torch.no_grad():
            self.log.result = seam.compile(self.log.exported, inputs=self.captured.inputs, **SETTINGS, **settings)
