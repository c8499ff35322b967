"""One compile by Torch-TensorRT, and what each stage of it showed."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch

from conformance.backends.base import CannotRun, Case, Compiled
from conformance.backends.torch_tensorrt import observers, runtime
from conformance.backends.torch_tensorrt.capture import refuses
from conformance.backends.torch_tensorrt.compilation import Compilation
from conformance.backends.torch_tensorrt.engine_cache import observe_cache
from conformance.backends.torch_tensorrt.instrument import capability_of
from conformance.backends.torch_tensorrt.program import Program, complex_outputs, out_spec, state_of
from conformance.backends.torch_tensorrt.seam import outside, seam
from conformance.checks.measured import BUILD_RAISES
from conformance.errors import first_line
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

NEEDS_DEVICE = "needs a CUDA device: the engine was built for a described GPU"


class TorchTensorRTCompiled(Compiled):
    def __init__(self, case: Case) -> None:
        self.case = case
        self.compilation = Compilation(case, case.module().eval())
        self.recording = self.compilation.log
        try:
            self.compilation.run()
        except Exception as error:  # kept: the user meets it when the module is called
            self.recording.error = error
        self.module = self.compilation.module = state_of(self.compilation.module, self.recording.result)

    # ----------------------------------------------------------------------------------------- calling

    def __call__(self, *inputs: Any) -> Any:
        if self.recording.error is not None:
            raise self.recording.error
        if self.case.target.headless:
            raise CannotRun(NEEDS_DEVICE)
        return self.recording.result(*inputs)

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        log = self.recording
        if log.exported is None or (log.error is not None and stage.order >= log.reached.order):
            return None
        if stage is Stage.CAPTURE:
            return Program(log.exported.module(), self.module)
        if stage is Stage.DECOMPOSITION:
            return self._decomposed()
        spec, hidden = out_spec(log.result), len(log.copied_back)
        common: dict[str, Any] = {"buffers": log.lifted_buffers, "hidden": hidden, "out_spec": spec}
        common["complex_outputs"] = complex_outputs(log.result)
        meant = {*log.buffer_writes, *log.lifted_buffers}  # an engine may write more than it should: codegen's fault
        if stage is Stage.POSTGRAD and log.lowered is not None and log.error is None:
            writes = {name: node for name, node in log.writes().items() if name in meant}
            return Program(log.lowered, self.module, writes=writes, **common)
        if log.partitioned is None or log.error is not None:
            return None
        if stage is Stage.FUSION:
            engines = {e.name: {name: node for name, node in e.writes.items() if name in meant} for e in log.engines}
            return Program(log.partitioned, self.module, engines=engines, **common)
        if stage is Stage.CODEGEN:
            return Program(log.partitioned, self.module, engines={e.name: e for e in log.engines}, **common)
        return None

    def _decomposed(self) -> Callable[..., Any] | None:
        """With buffers lifted to inputs, where that was done: what an engine is expected to write in place is
        written."""
        log = self.recording
        if not log.lifted_buffers or log.lifted is None:
            return Program(log.decomposed, self.module) if log.decomposed is not None else None
        writes = {name: log.buffer_writes[log.lifted_buffers[name]] for name in log.predicted}
        return Program(
            log.lifted,
            self.module,
            writes=writes,
            buffers=log.lifted_buffers,
            hidden=len(log.copied_back),
            out_spec=out_spec(log.result),
        )

    def recapture(self) -> dict[str, Any]:
        """What Dynamo captures where the user calls `torch.compile(backend="torch_tensorrt")`: the number of graphs, or
        why it fails."""
        graphs: list[torch.fx.GraphModule] = []

        def keep(gm: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
            graphs.append(gm)
            return gm.forward

        outside.reset()
        try:
            with torch.no_grad():
                torch.compile(self.case.module().eval(), backend=keep)(*self.case.inputs())
        except Exception as error:
            return {"dynamo": first_line(error, 120)}
        finally:
            outside.reset()
        return {"dynamo": {"graphs": len(graphs)}}

    def blame(self, error: BaseException) -> Stage:
        return self.recording.reached if error is self.recording.error else Stage.RUNTIME

    # --------------------------------------------------------------------------------------- observing

    def observe(self, stage: Stage) -> Observation:
        log = self.recording
        if silent := log.silent(stage):
            reason = f"torch_tensorrt {seam.version()} compiled a program without calling {seam.shown(silent[0])}"
            return Observation.says(Verdict.UNAVAILABLE, f"{reason}: the suite does not know this version yet")
        if log.error is not None and stage.order >= log.reached.order:
            return self._failed(stage)
        observation: Observation = getattr(self, f"_{stage.value}")()
        observation.seconds = log.seconds.get(stage, observation.seconds)
        return observation

    def _failed(self, stage: Stage) -> Observation:
        log = self.recording
        assert log.error is not None
        if self.case.micrograph.contract.runtime.raises:
            return self._refused(stage)
        if stage is not log.reached:
            return Observation.says(Verdict.BLOCKED, f"{log.reached} failed")
        if refuses(log.error):
            return Observation.says(
                Verdict.UNSUPPORTED, first_line(log.error).partition(": ")[2] or first_line(log.error)
            )
        told = {"warnings": "\n".join(log.warnings), "traceback": "".join(traceback.format_exception(log.error))}
        return Observation(texts=told, findings=[Finding(Kind.CRASH, BUILD_RAISES, first_line(log.error))])

    def _refused(self, stage: Stage) -> Observation:
        """Eager refuses the program as well: to raise is right, and what comes after cannot be observed."""
        log = self.recording
        assert log.error is not None
        if stage is log.reached:
            return Observation({"refuses": type(log.error).__name__}, {"error": first_line(log.error)})
        return Observation.says(
            Verdict.UNAVAILABLE, f"the compiler refuses the program in {log.reached}, as eager does"
        )

    def _capture(self) -> Observation:
        captured = self.compilation.captured
        assert captured is not None
        promised = self.case.micrograph.contract.capture
        return observers.capture(self.recording, captured, bool(promised.breaks) or (promised.graphs or 1) > 1)

    def _decomposition(self) -> Observation:
        return observers.decomposition(self.recording)

    def _postgrad(self) -> Observation:
        return observers.postgrad(self.recording)

    def _fusion(self) -> Observation:
        return observers.fusion(self.recording)

    def _codegen(self) -> Observation:
        capability = capability_of(self.case.target)
        here = "current" if self.case.target.name == "cuda" else "any"
        return observers.codegen(self.recording, capability.name if capability is not None else here)

    def _runtime(self) -> Observation:
        if self.case.target.headless:
            return Observation.says(Verdict.UNAVAILABLE, NEEDS_DEVICE)
        return runtime.observe_runtime(self.compilation)

    def _cache(self) -> Observation:
        return observe_cache(self.case, self.recording)
