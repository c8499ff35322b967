"""What a converter gave for a node of an engine's graph, held against the dtype and shape that the node says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Unlike:
    """In what a converter's result differs from its node: `INT32 for bfloat16`, `[3] for [4]`. `wrong`: it cannot be right, as a float is
    no integer and the shape is another one; a wider or narrower float may be."""

    said: str
    wrong: bool


def unlike(node: fx.Node, result: Any) -> Unlike | None:
    """In what a converter's result differs from the node that it was made for; None where it does not."""
    if node.op != "call_function":
        return None
    differences = (_unlike(value, tensor) for value, tensor in _pairs(node.meta.get("val"), result))
    return next((one for one in differences if one is not None), None)


def _pairs(value: Any, result: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    values = value if isinstance(value, (tuple, list)) else [value]
    results = result if isinstance(result, (tuple, list)) else [result]
    for one, tensor in zip(values, results, strict=False):  # a converter may leave out what nobody reads
        if isinstance(one, torch.Tensor) and type(tensor).__name__ == "ITensor":
            yield one, tensor


def _unlike(value: torch.Tensor, tensor: Any) -> Unlike | None:
    name = tensor.dtype.name
    if value.dtype not in DTYPES.get(name, (value.dtype,)):
        wrong = value.dtype.is_floating_point and not DTYPES[name][0].is_floating_point
        return Unlike(f"{name} for {str(value.dtype).removeprefix('torch.')}", wrong)
    try:
        shape = list(tensor.shape)
    except ValueError:  # the network cannot infer it
        return None
    sizes = [size if isinstance(size, int) else -1 for size in value.shape]
    if sizes == [] and shape == [1]:  # a number is often given a dim
        return None
    same = len(shape) == len(sizes) and all(-1 in pair or pair[0] == pair[1] for pair in zip(shape, sizes, strict=True))
    return None if same else Unlike(f"{shape} for {sizes}", wrong=True)
