"""The runtime stage on a GPU: the ways in which a user runs a compiled module, each held against eager.

The workbench judges the plain call; here are cudagraphs, pre-allocated outputs, the `torch.compile` door, and a saved program in a
process that compiled nothing. `CONFORMANCE_TRT_MODES=cudagraphs,saved` takes some of them."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from conformance import oracle
from conformance.backends.torch_tensorrt.compile_log import Recording
from conformance.backends.torch_tensorrt.fresh_process import Loader
from conformance.backends.torch_tensorrt.instrument import Recorder
from conformance.errors import UsageError, first_line
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

if TYPE_CHECKING:
    from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

SEEDS = (0, 1, 0)  # the first call captures; then other values, then the first ones again


class Declined(Exception):
    """Torch-TensorRT says that this way of running does not go with this module."""


def observe_runtime(compiled: TorchTensorRTCompiled) -> Observation:
    running = Running(compiled)
    observation = Observation({"calls": "export"})
    if running.differences(compiled, 0):
        return observation  # the workbench says what; the other ways would only repeat it
    modes: dict[str, str] = {}
    for name in chosen():
        try:
            found = list(MODES[name](running))
        except Declined as declined:
            modes[name] = f"declined: {declined}"
            continue
        except Exception as error:
            found = [Finding(Kind.CRASH, "TRT006", f"{name}: {first_line(error)}")]
        modes[name] = "differs" if found else "agrees"
        observation.findings += found[:3]
    observation.facts |= {"modes": modes} | running.facts
    if running.fallback and not observation.findings:
        observation.verdict, observation.reason = Verdict.FALLBACK, f"torch.compile door: {running.fallback}"
    return observation


def chosen() -> list[str]:
    asked = [name for name in os.environ.get("CONFORMANCE_TRT_MODES", ",".join(MODES)).split(",") if name]
    if unknown := set(asked) - set(MODES):
        raise UsageError(f"CONFORMANCE_TRT_MODES names {', '.join(sorted(unknown))}; known: {', '.join(MODES)}")
    return asked


class Running:
    def __init__(self, compiled: TorchTensorRTCompiled) -> None:
        self.compiled, self.case, self.library = compiled, compiled.case, compiled.library
        self.calls = self.case.micrograph.steps
        self.facts: dict[str, Any] = {}
        self.fallback = ""
        self._references: dict[int, oracle.Reference] = {}

    def reference(self, seed: int) -> oracle.Reference:
        if seed not in self._references:
            random = self.case.micrograph.contract.runtime.random
            module = self.case.module().eval()
            self._references[seed] = oracle.reference(module, self.case.inputs(seed), random=random, calls=self.calls)
        return self._references[seed]

    def differences(
        self, fn: Callable[..., Any], seed: int, inputs: tuple[Any, ...] | None = None, module: Any = None
    ) -> list[oracle.Difference]:
        given = self.case.inputs(seed) if inputs is None else inputs
        outcome = oracle.run(fn, given, module or self.compiled.module, calls=self.calls)
        return oracle.compare(outcome, self.reference(seed))

    # ------------------------------------------------------------------------------------------- modes

    def cudagraphs(self) -> Iterator[Finding]:
        """Capture and replay. The caller keeps the addresses of its inputs, as a captured graph asks for."""
        held = self.case.inputs(0)
        try:
            context = self.library.torch_tensorrt.runtime.enable_cudagraphs(self.compiled.recording.result)
            with context as module:
                for call, seed in enumerate(SEEDS, 1):
                    _fill(held, self.case.inputs(seed))
                    for difference in self.differences(module, seed, held):
                        yield Finding(Kind.REPLAY_MISMATCH, "TRT007", f"cudagraphs, call {call}: {difference}")
        except RuntimeError as error:
            if "incompatible with CUDA Graphs" in str(error):
                raise Declined(first_line(error, 120)) from None
            raise

    def preallocated(self) -> Iterator[Finding]:
        with self.library.torch_tensorrt.runtime.enable_pre_allocated_outputs(self.compiled.recording.result):
            for call, seed in enumerate(SEEDS, 1):
                for difference in self.differences(self.compiled, seed):
                    yield Finding(difference.kind, "TRT008", f"pre-allocated outputs, call {call}: {difference}")

    def torch_compile(self) -> Iterator[Finding]:
        """The other front door. It returns the original graph when a build fails: right, and not compiled."""
        from conformance.backends.torch_tensorrt.compiled import SETTINGS

        torch._dynamo.reset()
        module, record = self.case.module().eval(), Recording()
        fn = torch.compile(module, backend="torch_tensorrt", options=dict(SETTINGS))
        with Recorder(self.library, self.case.target, record).listening():
            found = self.differences(fn, 0, module=module)
        self.facts["torch_compile_engines"] = len(record.engines)
        failed = next((line for line in record.warnings if "conversion failed" in line), "")
        if failed or not record.engines:
            self.fallback = _last_line(failed) or "no op went to TensorRT"
        torch._dynamo.reset()
        for difference in found:
            yield Finding(difference.kind, "TRT009", f"torch.compile door: {difference}")

    def saved(self) -> Iterator[Finding]:
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            path = Path(folder) / "program.ep"
            inputs = self.case.inputs(0)
            try:
                self.library.torch_tensorrt.save(self.compiled.recording.result, str(path), arg_inputs=list(inputs))
            except ValueError as error:
                if "Not all inputs provided are" in str(error):
                    raise Declined("only tensors can be given to `save`") from None
                raise
            needs = inspect.getfile(self.case.micrograph)
            for seed in SEEDS[:2]:
                outcome = Loader.get().run(path, self.case.inputs(seed), self.calls, needs)
                ref = self.reference(seed)
                ref = oracle.Reference(replace(ref.eager, state={}), ref.exact)  # the other process keeps its own buffers
                for difference in oracle.compare(outcome, ref):
                    yield Finding(difference.kind, "TRT010", f"saved, and loaded in a fresh process: {difference}")


MODES: dict[str, Callable[[Running], Iterator[Finding]]] = {
    "cudagraphs": Running.cudagraphs,
    "preallocated": Running.preallocated,
    "torch_compile": Running.torch_compile,
    "saved": Running.saved,
}


def _fill(held: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    with torch.no_grad():
        for tensor, value in zip(held, values, strict=True):
            if isinstance(tensor, torch.Tensor) and 0 not in tensor.stride():
                tensor.copy_(value)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
