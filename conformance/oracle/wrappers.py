"""Tensors that only wrap others (`__tensor_flatten__`): they have no memory of their own, and all that can be compared is in their parts."""

from __future__ import annotations

from typing import Any

import torch

from conformance.torch_seam import pytree


def taken_apart(value: Any) -> Any:
    """The same value with a mapping in place of each wrapper in it: its class, what it says of itself, and the tensors inside."""
    return pytree.tree_map_only(torch.Tensor, _parts, value)


def is_wrapper(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "__tensor_flatten__")


def _parts(tensor: Any) -> Any:
    if not is_wrapper(tensor):
        return tensor
    names, notes = tensor.__tensor_flatten__()
    return {
        "class": f"{type(tensor).__module__}.{type(tensor).__qualname__}",
        "dtype": tensor.dtype,
        "shape": tuple(tensor.shape),
        "stride": tuple(tensor.stride()),
        "requires_grad": tensor.requires_grad,
        "notes": notes,
        "inside": {name: _parts(getattr(tensor, name)) for name in names},
    }
