"""Torch-TensorRT: engines for a described GPU, built and not run. What an engine computes is checked as of the partitioned graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from conformance.backends.base import Case
from conformance.contract import Contract
from conformance.inputs import Value
from conformance.micrograph import Micrograph
from conformance.ops.call import Call, Wide
from conformance.ops.rung import Compile, Refusal, owners
from conformance.stage import Stage
from conformance.target import Target
from conformance.torch_seam import OpOverload

STARTED: list[Any] = []  # kept, so that the library stays as it is


class Engines:
    """One compile by Torch-TensorRT: the graph is partitioned, and an engine is built of every part that has converters."""

    # An engine's results are its own, and contiguous.
    stage, width, exported, keeps_layouts = Stage.CODEGEN, 16, True, False

    def __init__(self, target: Target) -> None:
        self.target = target

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        from conformance.backends.torch_tensorrt.capture import refuses
        from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

        compiled = TorchTensorRTCompiled(Case(micrograph_of(calls), self.target))
        log = compiled.recording
        try:
            if log.error is not None:
                raise Refusal(log.error, compiled.blame(log.error), refuses(log.error), convertible(log.lowered))
            function = compiled.at(Stage.CODEGEN) or compiled.at(Stage.POSTGRAD)
            if function is None:
                raise NotImplementedError("Torch-TensorRT left no program")
            left = left_in_torch(log, calls)
            known = set(convertible(log.lowered))
            unbuilt = [[op for op in ops if op in known] for ops in left]
            yield Compile(function, externs=left, kernels=[bool(log.engines)] * len(calls), unbuilt=unbuilt)
        finally:
            compiled.close()

    def stage_at_fault(self, is_wrong: Callable[[Compile], bool], call: Call) -> str:
        """The first stage whose program is wrong as well."""
        from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

        compiled = TorchTensorRTCompiled(Case(micrograph_of([call]), self.target))
        try:
            for stage in (Stage.CAPTURE, Stage.DECOMPOSITION, Stage.POSTGRAD, Stage.FUSION):
                function = compiled.at(stage)
                if function is not None and is_wrong(Compile(function)):
                    return stage.value
        finally:
            compiled.close()
        return Stage.CODEGEN.value


def start_tensorrt() -> None:
    """Make a builder before any process is forked, and before the operator database is read. Where an NVIDIA driver is installed, a
    process that was forked earlier dies when it makes its first one (TensorRT for RTX 1.6.1, no device visible)."""
    from conformance.backends.torch_tensorrt.seam import not_importable, seam

    if not not_importable():
        STARTED.append(seam.tensorrt.Builder(seam.tensorrt.Logger()))


def micrograph_of(calls: Sequence[Call]) -> type[Micrograph]:
    """The calls as a micrograph, as the backend takes one."""
    wide = Wide(calls)
    tensors = tuple(tensor for call in calls for tensor in call.tensors)

    class Operators(Micrograph):
        inputs = tuple(Value(lambda tensor=tensor: tensor) for tensor in tensors)
        contract = Contract()

        def forward(self, *given: torch.Tensor) -> Any:
            return wide.function(*given)

        @classmethod
        def example(cls, seed: int = 0, dims: Any = None, device: str = "cpu") -> tuple[Any, ...]:
            return tuple(tensor.detach().clone(memory_format=torch.preserve_format) for tensor in tensors)

    return Operators


def convertible(gm: torch.fx.GraphModule | None) -> list[str]:
    """The operators of a graph that Torch-TensorRT's registry has a converter for, whether or not it takes their arguments."""
    from conformance.backends.torch_tensorrt.seam import seam

    claimed = seam.converters.unique_targets() if gm is not None else ()
    return sorted({str(node.target) for node in gm.graph.nodes if node.target in claimed} if gm is not None else ())


def left_in_torch(log: Any, calls: Sequence[Call]) -> list[list[str]]:
    """The operators of each call that no engine computes."""
    found: list[list[str]] = [[] for _ in calls]
    if log.lowered is None:
        return found
    belongs = owners(log.lowered, calls, range(sum(len(call.tensors) for call in calls)))
    outside = log.partitioned if log.engines else log.lowered
    for node in outside.graph.nodes if outside is not None else ():
        if node.op == "call_function" and isinstance(node.target, OpOverload) and node.name in belongs:
            found[belongs[node.name]].append(str(node.target))
    return found
