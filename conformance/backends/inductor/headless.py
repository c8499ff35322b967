"""Inductor for a GPU that is described, not present: compiled as there, run by interpretation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from conformance import oracle, scenario
from conformance.backends.base import Case
from conformance.backends.inductor.compiled import InductorCompiled, numbered
from conformance.backends.inductor.seam import seam
from conformance.checks.measured import RACE
from conformance.errors import CannotRun, NotInEager, first_line
from conformance.headless.cpu_dispatch import CPU_ALONE, NO_CUDA_KERNEL, TWO_DEVICES
from conformance.headless.device import described
from conformance.headless.errors import NotInterpretable
from conformance.headless.kernel import Binary, Kernel
from conformance.headless.program import Program, needs_driver
from conformance.headless.seam import SUBSCRIBED
from conformance.micrograph import Micrograph
from conformance.processes import in_fork
from conformance.stage import Stage
from conformance.target import Target
from conformance.trace import Observation, digest
from conformance.verdict import Finding, Kind, Verdict

NOT_CALLED = "torch {version} compiled a kernel without calling {name}: the suite does not know this version yet"


class HeadlessCompiled(InductorCompiled):
    _fn: Program

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        """Those of the first program that has any: what is called, or what a scenario plays first."""
        return {}

    def _program(self, module: Any) -> Any:
        program: Any = super()._program(module)
        if not self._kernels:
            program.kernels = self._kernels
        return program

    def observe(self, stage: Stage) -> Observation:
        if stage in SUBSCRIBED["build_triton_kernel"] and self._generated() and not self._kernels:
            reason = NOT_CALLED.format(version=torch.__version__, name=seam.shown("build_triton_kernel"))
            return Observation.says(Verdict.UNAVAILABLE, reason)
        return super().observe(stage)

    def _generated(self) -> bool:
        """Was a Triton kernel generated?"""
        return any("triton" in source for graph in self.watch.graphs for source in graph.kernels.values())

    def out_of_reach(self, error: BaseException) -> CannotRun | None:
        if not needs_driver(error):
            return None
        return NotInterpretable("the scenario keeps a tensor of the GPU outside of the program: it has no values there")

    def at_fault(self, stage: Stage, wrong: list[oracle.Difference], ref: oracle.Reference) -> Stage:
        self.watch.raw = [self._fn._to_host(value) for value in self.watch.raw]
        self.watch.left = [self._fn._to_host(value) for value in self.watch.left]
        return super().at_fault(stage, wrong, ref)

    def _codegen(self) -> Observation:
        sources = self._sources()
        kernels = dict(self._kernels)
        binaries = self._binaries(kernels)
        facts = {
            **self._programs(sources),
            "kernels": {name: binary.facts() for name, binary in binaries.items()},
            "digest": digest("\n".join(kernel.source for kernel in kernels.values())),
            "instructions": sorted({name for binary in binaries.values() for name in binary.instructions}),
        }
        texts = numbered("program", sources)
        for name, kernel in kernels.items():
            texts[f"kernel {name}"] = described_source(kernel, binaries[name])
            texts[f"ptx {name}"] = binaries[name].ptx
        races = [f"{name}: {line}" for name, kernel in kernels.items() for line in kernel.races]
        return Observation(facts, texts, findings=[Finding(Kind.BAD_CODE, RACE, line) for line in races[:3]])

    def _binaries(self, kernels: dict[str, Kernel]) -> dict[str, Binary]:
        with described(self.case.target):
            return {name: kernel.compiled() for name, kernel in kernels.items()}

    def _runtime(self) -> Observation:
        return Observation({"calls": "interpreted"})


def described_program(case: Case, module: Any, compiled: bool = True) -> Program:
    """The module as the described device runs it, compiled or in eager."""
    return Program(module, case.target, compiled, options=case.micrograph.options)


def runs_in_eager(micrograph: type[Micrograph], target: Target) -> bool:
    """Can eager on the described device be had? Some library kernels exist on a GPU only; then it is eager on the CPU."""
    if (micrograph, target) not in _ERRORS:
        _ERRORS[micrograph, target] = _error_in_eager(Case(micrograph, target), target)
    error = _ERRORS[micrograph, target]
    if TWO_DEVICES in error or NO_CUDA_KERNEL in error:
        raise NotInEager(f"eager itself does not run it on this GPU: {error}")
    if any(words in error for words in CPU_ALONE):
        raise NotInEager(f"what eager does on this GPU cannot be had from the CPU, which refuses: {error}")
    return not error


_ERRORS: dict[tuple[type[Micrograph], Target], str] = {}  # "": none


def _error_in_eager(case: Case, target: Target) -> str:
    """Of a scenario, what it calls is called alone. Where that fails, as it must where the play makes other arguments, it is played."""

    def alone() -> str:
        return _told(oracle.run(Program(case.module(), target, compiled=False), case.inputs(0)))

    def played() -> str:
        module = case.module()
        run = scenario.eager(Program(module, target, compiled=False))
        return _told(oracle.play(module, run, case.inputs(0)))

    if not case.micrograph.has_scenario():
        return alone()
    error = in_fork(alone)  # what the program does to its surroundings, the play must not see
    if error is not None and (not error or _says_why(error)):
        return str(error)
    other = in_fork(played)
    told = other is not None and (not other or _says_why(other))
    return str(other) if told else str(error or "it does not run alone")


def _says_why(error: str) -> bool:
    return any(words in error for words in (TWO_DEVICES, NO_CUDA_KERNEL, *CPU_ALONE))


def _told(outcome: oracle.Outcome) -> str:
    return first_line(outcome.error) if outcome.error is not None else ""


def described_source(kernel: Kernel, binary: Binary) -> str:
    """The source with a head that says what became of it."""
    if binary.error:
        return f"# does not compile: {binary.error}\n{kernel.source}"
    head: dict[str, Any] = {
        "registers": binary.registers,
        "spills": f"{binary.spills} bytes",
        "shared memory": f"{binary.shared} bytes",
        "configuration": f"{binary.configuration} (the first of {len(kernel.autotuner.configs)}; timing would choose)",
        "instructions": " ".join(f"{name}×{count}" for name, count in binary.instructions.items()) or "none of note",
    }
    return "".join(f"# {name}: {value}\n" for name, value in head.items()) + kernel.source
