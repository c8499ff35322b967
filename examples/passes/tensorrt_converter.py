"""A converter of Torch-TensorRT's kind: sigmoid as half of (1 + tanh of half of it).

conformance pass examples/passes/tensorrt_converter.py:sigmoid_by_tanh -m mlp.swiglu
"""

from __future__ import annotations

from typing import Any

import torch
from torch_tensorrt.dynamo._SourceIR import SourceIR
from torch_tensorrt.dynamo.conversion import ConversionContext, ConverterPriority, dynamo_tensorrt_converter, impl

backend = "torch_tensorrt"
micrographs = "mlp.swiglu"


@dynamo_tensorrt_converter(
    torch.ops.aten.sigmoid.default, priority=ConverterPriority.HIGH, supports_dynamic_shapes=True
)
def sigmoid_by_tanh(
    ctx: ConversionContext, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> Any:
    half = impl.elementwise.mul(ctx, target, SourceIR.ATEN, f"{name}_half", args[0], 0.5)
    tanh = impl.activation.tanh(ctx, target, SourceIR.ATEN, f"{name}_tanh", half)
    more = impl.elementwise.add(ctx, target, SourceIR.ATEN, f"{name}_more", tanh, 1.0)
    return impl.elementwise.mul(ctx, target, SourceIR.ATEN, name, more, 0.5)
