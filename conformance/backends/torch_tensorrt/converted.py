"""What a converter gave for a node of an engine's graph, held against the dtype and shape that the node says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

# TensorRT's name of a dtype → what a tensor of the graph may have. An engine has no float64, and int32 stands for int64
# where indices and sizes are computed.
DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    "FLOAT": (torch.float32, torch.float64),
    "HALF": (torch.float16,),
    "BF16": (torch.bfloat16,),
    "INT64": (torch.int64,),
    "INT32": (torch.int32, torch.int64),
    "INT8": (torch.int8,),
    "UINT8": (torch.uint8,),
    "BOOL": (torch.bool,),
    "FP8": (torch.float8_e4m3fn,),
}


def unlike(node: fx.Node, result: Any) -> str:
    """In what a converter's result differs from its node: `INT32 for bfloat16`, `[3] for [4]`; empty where it does not."""
    if node.op != "call_function":
        return ""
    return "; ".join(said for value, tensor in _pairs(node.meta.get("val"), result) if (said := _unlike(value, tensor)))


def _pairs(value: Any, result: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    values = value if isinstance(value, (tuple, list)) else [value]
    results = result if isinstance(result, (tuple, list)) else [result]
    for one, tensor in zip(values, results, strict=False):  # a converter may leave out what nobody reads
        if isinstance(one, torch.Tensor) and type(tensor).__name__ == "ITensor":
            yield one, tensor


def _unlike(value: torch.Tensor, tensor: Any) -> str:
    name = tensor.dtype.name
    if value.dtype not in DTYPES.get(name, (value.dtype,)):
        return f"{name} for {str(value.dtype).removeprefix('torch.')}"
    try:
        shape = list(tensor.shape)
    except ValueError:  # the network cannot infer it
        return ""
    sizes = [size if isinstance(size, int) else -1 for size in value.shape]
    if sizes == [] and shape == [1]:  # a number is often given a dim
        return ""
    known = len(shape) == len(sizes) and all(
        -1 in pair or pair[0] == pair[1] for pair in zip(shape, sizes, strict=True)
    )
    return "" if known else f"{shape} for {sizes}"
