"""One compile by Torch-TensorRT."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from conformance.backends.base import CannotRun, Case, Compiled
from conformance.backends.torch_tensorrt import observers, runtime
from conformance.backends.torch_tensorrt.api import Library
from conformance.backends.torch_tensorrt.capture import Captured, Refused, capture
from conformance.backends.torch_tensorrt.compile_log import Recording
from conformance.backends.torch_tensorrt.engine_cache import observe_cache
from conformance.backends.torch_tensorrt.instrument import Recorder, capability_of
from conformance.backends.torch_tensorrt.program import Program, out_spec, state_of
from conformance.errors import first_line
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

# A micrograph has a few ops, and the default leaves blocks of fewer than five to PyTorch. TF32 is a choice about precision
# that the user makes, not an error of the compiler: off, as eager has it.
SETTINGS: dict[str, Any] = {"min_block_size": 1, "disable_tf32": True}
NEEDS_DEVICE = "needs a CUDA device: the engine was built for a described GPU"


class TorchTensorRTCompiled(Compiled):
    def __init__(self, library: Library, case: Case) -> None:
        self.library, self.case = library, case
        self.recording = Recording()
        self.captured: Captured | None = None
        self.module = case.module().eval()
        self._stack = ExitStack()
        try:
            self._compile()
        except Exception as error:  # kept: the user meets it when the module is called
            self.recording.error = error
        self.module = state_of(self.module, self.recording.result)

    def _compile(self) -> None:
        started = time.perf_counter()
        self.captured = capture(self.case, self.module, self.library.torch_tensorrt)
        record = self.recording
        record.exported = self.captured.program
        record.seconds[Stage.CAPTURE] = time.perf_counter() - started
        with Recorder(self.library, self.case.target, record, self.module).watching(), torch.no_grad():
            record.result = self.library.torch_tensorrt.dynamo.compile(record.exported, inputs=self.captured.inputs, **SETTINGS)

    # ----------------------------------------------------------------------------------------- calling

    def __call__(self, *inputs: Any) -> Any:
        if self.recording.error is not None:
            raise self.recording.error
        if self.case.target.headless:
            raise CannotRun(NEEDS_DEVICE)
        return self.recording.result(*inputs)

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        record = self.recording
        if record.exported is None or (record.error is not None and stage.order >= record.reached.order):
            return None
        if stage is Stage.CAPTURE:
            return Program(record.exported.module(), self.module)
        if stage is Stage.DECOMPOSITION:
            return self._decomposed()
        spec, hidden = out_spec(record.result), len(record.copied_back)
        common: dict[str, Any] = {"buffers": record.lifted_buffers, "hidden": hidden, "out_spec": spec}
        meant = {*record.buffer_writes, *record.lifted_buffers}  # an engine may write more than it should: codegen's fault
        if stage is Stage.POSTGRAD and record.lowered is not None and record.error is None:
            writes = {name: node for name, node in record.writes().items() if name in meant}
            return Program(record.lowered, self.module, writes=writes, **common)
        if record.partitioned is None or record.error is not None:
            return None
        if stage is Stage.FUSION:
            engines = {e.name: {name: node for name, node in e.writes.items() if name in meant} for e in record.engines}
            return Program(record.partitioned, self.module, engines=engines, **common)
        if stage is Stage.CODEGEN:
            return Program(record.partitioned, self.module, engines={e.name: e for e in record.engines}, **common)
        return None

    def _decomposed(self) -> Callable[..., Any] | None:
        """With buffers lifted to inputs, where that was done: what an engine is expected to write in place is written."""
        record = self.recording
        if not record.lifted_buffers or record.lifted is None:
            return Program(record.decomposed, self.module) if record.decomposed is not None else None
        writes = {name: record.buffer_writes[record.lifted_buffers[name]] for name in record.predicted}
        return Program(
            record.lifted,
            self.module,
            writes=writes,
            buffers=record.lifted_buffers,
            hidden=len(record.copied_back),
            out_spec=out_spec(record.result),
        )

    def recapture(self) -> dict[str, Any]:
        """The other front door, as far as capture goes: what Dynamo hands to `torch.compile(backend="torch_tensorrt")`."""
        graphs: list[torch.fx.GraphModule] = []

        def keep(gm: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
            graphs.append(gm)
            return gm.forward

        torch._dynamo.reset()
        try:
            with torch.no_grad():
                torch.compile(self.case.module().eval(), backend=keep)(*self.case.inputs())
        except Exception as error:
            return {"dynamo_door": first_line(error, 120)}
        finally:
            torch._dynamo.reset()
        return {"dynamo_door": {"graphs": len(graphs)}}

    def blame(self, error: BaseException) -> Stage:
        return self.recording.reached if error is self.recording.error else Stage.RUNTIME

    def close(self) -> None:
        self._stack.close()

    # --------------------------------------------------------------------------------------- observing

    def observe(self, stage: Stage) -> Observation:
        record = self.recording
        if record.error is not None and stage.order >= record.reached.order:
            return self._failed(stage)
        observation: Observation = getattr(self, f"_{stage.value}")()
        observation.seconds = record.seconds.get(stage, observation.seconds)
        return observation

    def _failed(self, stage: Stage) -> Observation:
        record = self.recording
        assert record.error is not None
        if stage is not record.reached:
            return Observation.says(Verdict.BLOCKED, f"{record.reached} failed")
        if isinstance(record.error, (Refused, NotImplementedError)):
            return Observation.says(Verdict.UNSUPPORTED, first_line(record.error).partition(": ")[2] or first_line(record.error))
        told = {"warnings": "\n".join(record.warnings), "traceback": "".join(traceback.format_exception(record.error))}
        return Observation(texts=told, findings=[Finding(Kind.CRASH, "TRT004", first_line(record.error))])

    def _capture(self) -> Observation:
        assert self.captured is not None
        return observers.capture(self.recording, self.captured, bool(self.case.micrograph.contract.capture.breaks))

    def _decomposition(self) -> Observation:
        return observers.decomposition(self.recording, self.library)

    def _postgrad(self) -> Observation:
        return observers.postgrad(self.recording)

    def _fusion(self) -> Observation:
        return observers.fusion(self.recording, self.library)

    def _codegen(self) -> Observation:
        capability = capability_of(self.library.trt, self.case.target)
        here = "current" if self.case.target.name == "cuda" else "any"
        return observers.codegen(self.recording, capability.name if capability is not None else here)

    def _runtime(self) -> Observation:
        if self.case.target.headless:
            return Observation.says(Verdict.UNAVAILABLE, NEEDS_DEVICE)
        return runtime.observe_runtime(self)

    def _cache(self) -> Observation:
        return observe_cache(self)
