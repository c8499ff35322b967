"""Rungs that compile nothing, and rungs that are wrong in one known way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from conformance.ops.call import Call, program
from conformance.ops.rung import Compile, Refusal
from conformance.stage import Stage
from conformance.torch_seam import pytree


class Eager:
    """Runs the calls as they are."""

    stage, width, exported, keeps_layouts = Stage.DECOMPOSITION, 8, False, True

    def __init__(self) -> None:
        self.compiles: list[int] = []

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        self.compiles.append(len(calls))
        yield Compile(self.changed(calls, program(calls).function))

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        return function


def each_tensor(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """Results with a change to every tensor."""

    class Changed(Eager):
        def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *tensors: pytree.tree_map_only(torch.Tensor, change, function(*tensors))

    return Changed


Doubled = each_tensor(lambda t: t * 2)
OtherDtype = each_tensor(lambda t: t.double())
OtherStrides = each_tensor(
    lambda t: t.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1) if t.dim() == 2 else t
)
LostAlias = each_tensor(torch.clone)


class OnlyTransposed(Eager):
    """Wrong for calls of one form alone."""

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        guilty = [call.key.form == "transposed" for call in calls]

        def run(*tensors: torch.Tensor) -> Any:
            result = function(*tensors)
            results = result if len(calls) > 1 else (result,)
            changed = tuple(one + 1 if bad else one for one, bad in zip(results, guilty, strict=True))
            return changed if len(calls) > 1 else changed[0]

        return run


class Refusing(Eager):
    """Raises while it compiles a call in bfloat16."""

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        if any(call.key.dtype == "bfloat16" for call in calls):
            raise NotImplementedError("no bfloat16 here")
        return function


class SaysWhy(Eager):
    """Raises for bfloat16 as a compiler does that knows more of it."""

    exported = True

    def __init__(self, by_design: bool) -> None:
        super().__init__()
        self.by_design = by_design

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        if any(call.key.dtype == "bfloat16" for call in calls):
            raise Refusal(ValueError("no bfloat16"), Stage.FUSION, self.by_design, ["aten.mul.Tensor"])
        return function


class OwnMemory(OtherStrides):
    """Results with strides of their own, as a TensorRT engine has."""

    keeps_layouts = False


class Dying(Eager):
    """Takes its process with it at one call."""

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        if any((call.key.dtype, call.key.form, call.key.sample) == ("bfloat16", "sliced", 1) for call in calls):
            os.kill(os.getpid(), signal.SIGSEGV)
        return function


class LostWrite(Eager):
    """Gives the right result and does not write."""

    def changed(self, calls: Sequence[Call], function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*tensors: torch.Tensor) -> Any:
            kept = [tensor.detach().clone() for tensor in tensors]
            result = function(*tensors)
            for tensor, before in zip(tensors, kept, strict=True):
                tensor.data.copy_(before)
            return result

        return run
