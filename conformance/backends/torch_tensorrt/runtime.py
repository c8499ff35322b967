"""The runtime stage on a GPU: the ways in which a user runs a compiled module, each held against eager.

The plain call is examined as every backend's is. Here are CUDA graphs, pre-allocated outputs,
`torch.compile(backend="torch_tensorrt")`, and a saved program in a process that compiled nothing.
`CONFORMANCE_TRT_MODES=cudagraphs,saved` takes some of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.backends.torch_tensorrt.compilation import SETTINGS, Compilation
from conformance.backends.torch_tensorrt.compile_log import CompileLog
from conformance.backends.torch_tensorrt.instrument import Instrument
from conformance.backends.torch_tensorrt.saved_program import run_in_fresh_process
from conformance.backends.torch_tensorrt.seam import outside, recordings, seam
from conformance.checks.measured import ENGINE_REPLAY, JIT_ENTRY, MODE_RAISES, PREALLOCATED, SAVED_ENGINE
from conformance.errors import UsageError, first_line
from conformance.replay import Replays
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

SEEDS = (0, 1, 0)  # the first call captures; then other values, then the first ones again


class Declined(Exception):
    """Torch-TensorRT says that this way of running does not go with this module."""


def observe_runtime(compilation: Compilation) -> Observation:
    """Run a compiled module in every mode."""
    running = Running(compilation)
    observation = Observation({"calls": "export"})
    if running.differences(running.program, 0):
        return observation  # the examination says in what; the other modes would only repeat it
    modes: dict[str, str] = {}
    for name in chosen():
        try:
            found = list(MODES[name](running))
        except Declined as declined:
            modes[name] = f"declined: {declined}"
            continue
        except Exception as error:
            found = [Finding(Kind.CRASH, MODE_RAISES, f"{name}: {first_line(error)}")]
        modes[name] = "differs" if found else "agrees"
        observation.findings += found[:3]
    observation.facts |= {"modes": modes} | running.facts
    if running.fallback and not observation.findings:
        observation.verdict, observation.reason = Verdict.FALLBACK, f"torch.compile: {running.fallback}"
    return observation


def chosen() -> list[str]:
    asked = [name for name in os.environ.get("CONFORMANCE_TRT_MODES", ",".join(MODES)).split(",") if name]
    if unknown := set(asked) - set(MODES):
        raise UsageError(f"CONFORMANCE_TRT_MODES names {', '.join(sorted(unknown))}; known: {', '.join(MODES)}")
    return asked


class Running:
    """A compiled module that is run in several modes.

    fallback   why `torch.compile` gave the original graph back; empty when it compiled it"""

    def __init__(self, compilation: Compilation) -> None:
        self.case, self.module, self.program = compilation.case, compilation.module, compilation.log.result
        self.calls = self.case.micrograph.steps
        self.facts: dict[str, Any] = {}
        self.fallback = ""
        self._references: dict[int, oracle.Reference] = {}

    def reference(self, seed: int) -> oracle.Reference:
        if seed not in self._references:
            self._references[seed] = self.reference_of(self.case.inputs(seed))
        return self._references[seed]

    def reference_of(self, inputs: tuple[Any, ...]) -> oracle.Reference:
        random = self.case.micrograph.contract.runtime.random
        return oracle.reference(self.case.module().eval(), inputs, random=random, calls=self.calls)

    def differences(
        self, fn: Callable[..., Any], seed: int, inputs: tuple[Any, ...] | None = None, module: Any = None
    ) -> list[oracle.Difference]:
        given = self.case.inputs(seed) if inputs is None else inputs
        outcome = oracle.run(fn, given, module or self.module, calls=self.calls)
        return oracle.compare(outcome, self.reference(seed))

    # ------------------------------------------------------------------------------------------- modes

    def cudagraphs(self) -> Iterator[Finding]:
        """Capture and replay: a skip that is not reported is a finding."""
        try:
            with seam.enable_cudagraphs(self.program) as module:
                yield from self._replayed(module)
                recorded = recordings(module)
            self.facts["recordings"] = recorded
            if recorded == 0:
                yield Finding(
                    Kind.REPLAY_MISMATCH, ENGINE_REPLAY, "cudagraphs: nothing was recorded, and nothing says so"
                )
        except RuntimeError as error:
            if "incompatible with CUDA Graphs" in str(error):
                raise Declined(first_line(error, 120)) from None
            raise

    def _replayed(self, module: Any) -> Iterator[Finding]:
        """Called as a recording is: inputs that stay and are written first, as a captured graph asks for."""
        replays = Replays(module, self.case, self.module, self.reference_of)
        for when, difference in islice(replays.habits(new_values=True), 3):
            yield Finding(Kind.REPLAY_MISMATCH, ENGINE_REPLAY, f"cudagraphs, {when}: {difference}")

    def preallocated(self) -> Iterator[Finding]:
        with seam.enable_pre_allocated_outputs(self.program):
            for call, seed in enumerate(SEEDS, 1):
                for difference in self.differences(self.program, seed):
                    yield Finding(difference.kind, PREALLOCATED, f"pre-allocated outputs, call {call}: {difference}")

    def torch_compile(self) -> Iterator[Finding]:
        """`torch.compile`. It returns the original graph when a build fails: right, and not compiled."""
        outside.reset()
        module, log = self.case.module().eval(), CompileLog()
        fn = torch.compile(module, backend="torch_tensorrt", options=dict(SETTINGS))
        with Instrument(self.case.target, log).listening():
            found = self.differences(fn, 0, module=module)
        self.facts["torch_compile_engines"] = len(log.engines)
        failed = next((line for line in log.warnings if "conversion failed" in line), "")
        if failed or not log.engines:
            self.fallback = _last_line(failed) or "no op went to TensorRT"
        outside.reset()
        for difference in found:
            yield Finding(difference.kind, JIT_ENTRY, f"torch.compile: {difference}")

    def saved(self) -> Iterator[Finding]:
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            path = Path(folder) / "program.ep"
            inputs = self.case.inputs(0)
            try:
                seam.save(self.program, str(path), arg_inputs=list(inputs))
            except ValueError as error:
                if "Not all inputs provided are" in str(error):
                    raise Declined("only tensors can be given to `save`") from None
                raise
            for seed in SEEDS[:2]:
                outcome = run_in_fresh_process(path, self.case.inputs(seed), self.calls, self.case.micrograph)
                for difference in oracle.compare(outcome, _without_module(self.reference(seed))):
                    yield Finding(difference.kind, SAVED_ENGINE, f"saved, and loaded in a fresh process: {difference}")


MODES: dict[str, Callable[[Running], Iterator[Finding]]] = {
    "cudagraphs": Running.cudagraphs,
    "preallocated": Running.preallocated,
    "torch_compile": Running.torch_compile,
    "saved": Running.saved,
}


def _without_module(ref: oracle.Reference) -> oracle.Reference:
    """What is left of a reference for a program in another process: buffers and attributes stay in that process."""
    python = {path: value for path, value in ref.eager.python.items() if path.startswith("input ")}
    return oracle.Reference(replace(ref.eager, state={}, python=python), ref.exact)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
