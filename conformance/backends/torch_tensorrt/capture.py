"""Capture: torch.export with the micrograph's symbolic dims, and the ranges that TensorRT builds for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from conformance import scenario
from conformance.backends.base import Case
from conformance.errors import first_line
from conformance.inputs import Tensor, size_of
from conformance.oracle import clone_inputs

# What torch.export raises when it says that it does not take a program, as opposed to breaking on it.
REFUSALS = (
    "Unsupported",
    "UserError",
    "ConstraintViolationError",
    "GuardOnDataDependentSymNode",
    "UnsupportedOperatorException",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
)
# Refusals that have no class of their own: of torch.export, and of Torch-TensorRT's parsing of inputs.
REFUSAL_TEXTS = ("Unsupported input type", "Invalid input type", "Could not infer dtype of")


class Refused(Exception):
    """torch.export does not take this program, or Torch-TensorRT does not compile its kind."""


@dataclass
class Captured:
    program: ExportedProgram
    inputs: list[Any]  # as `torch_tensorrt.dynamo.compile` takes them
    dynamic: list[str] = field(default_factory=list)
    specialized: dict[str, str] = field(default_factory=dict)  # dim → why it did not stay symbolic


def capture(case: Case, module: nn.Module, torch_tensorrt: Any) -> Captured:
    if any(isinstance(spec, Tensor) and spec.grad for spec in case.micrograph.inputs):
        raise Refused("Torch-TensorRT compiles inference only: the micrograph asks for gradients")
    inputs = case.inputs()
    if why := scenario.not_callable(module, inputs):
        raise Refused(f"torch.export needs the arguments of the call: {why}")
    dynamic = case.micrograph.contract.capture.dynamic
    specialized: dict[str, str] = {}
    try:
        program = _export(module, inputs, _dynamic_shapes(case, dynamic))
    except Refused as refusal:
        if not dynamic:
            raise
        specialized = dict.fromkeys(dynamic, str(refusal))
        dynamic = ()
        program = _export(module, inputs, None)
    return Captured(program, _specs(case, inputs, dynamic, torch_tensorrt), [*dynamic], specialized)


def refuses(error: BaseException) -> bool:
    """Does Torch-TensorRT say that it does not take this kind of program, or of input?"""
    return isinstance(error, (Refused, NotImplementedError)) or str(error).startswith(REFUSAL_TEXTS)


def _export(module: nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any) -> ExportedProgram:
    try:
        with torch.no_grad():
            return torch.export.export(module, clone_inputs(inputs), dynamic_shapes=dynamic_shapes, strict=False)
    except Exception as error:
        if type(error).__name__ in REFUSALS or refuses(error):
            raise Refused(f"torch.export does not take it: {first_line(error)}") from error
        raise


def bounds(size: int) -> tuple[int, int]:
    """The range that a symbolic dim is built for. Sizes 0 and 1 are specialized by torch.export."""
    return min(2, size), 4 * size


def _sized(case: Case, which: Mapping[str, int]) -> list[tuple[int, ...] | None]:
    dims = {**case.micrograph.dims, **case.sizes, **which}
    return [
        tuple(size_of(term, dims) for term in spec.names()) if isinstance(spec, Tensor) else None
        for spec in case.micrograph.inputs
    ]


def _dynamic_shapes(case: Case, dynamic: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Named dims become `Dim`s; a product or sum of them (`2*s`, `s+1`) becomes one derived from them."""
    if not dynamic:
        return None
    sizes = {**case.micrograph.dims, **case.sizes}
    known: dict[str, Any] = {
        name: Dim(name, min=bounds(sizes[name])[0], max=bounds(sizes[name])[1]) for name in dynamic
    }
    shapes: list[Any] = []
    for spec in case.micrograph.inputs:
        if not isinstance(spec, Tensor):
            shapes.append(None)
            continue
        shape = {}
        for index, term in enumerate(spec.names()):
            if set(re.findall(r"[a-zA-Z_]\w*", term)) & {*dynamic}:
                shape[index] = eval(term, {"__builtins__": {}}, {**sizes, **known})
        shapes.append(shape or None)
    return tuple(shapes)


def _specs(case: Case, inputs: tuple[Any, ...], dynamic: tuple[str, ...], torch_tensorrt: Any) -> list[Any]:
    sizes = {**case.micrograph.dims, **case.sizes}
    low = _sized(case, {name: bounds(sizes[name])[0] for name in dynamic})
    high = _sized(case, {name: bounds(sizes[name])[1] for name in dynamic})
    specs: list[Any] = []
    for value, least, most in zip(inputs, low, high, strict=True):
        if not isinstance(value, torch.Tensor) or value.is_complex():
            specs.append(value)
        elif least != most:
            specs.append(
                torch_tensorrt.Input(min_shape=least, opt_shape=tuple(value.shape), max_shape=most, dtype=value.dtype)
            )
        elif _plain_layout(value):
            specs.append(value)
        else:  # `Input.from_tensor` refuses other strides; the shape and dtype are all that a network input has
            specs.append(torch_tensorrt.Input(shape=tuple(value.shape), dtype=value.dtype))
    return specs


def _plain_layout(value: torch.Tensor) -> bool:
    return value.is_contiguous() or (value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last))
