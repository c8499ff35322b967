"""The same micrograph with dynamic sizes, in training, in other dtypes and with other strides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance.micrograph import Micrograph


@dataclass
class Variant:
    """A module, inputs and options of `torch.compile`."""

    name: str
    module: Micrograph
    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def base(cls: type[Micrograph]) -> Variant:
    return Variant("base", cls.build(), cls.example(), dict(cls.options))


def _dynamic(one: Variant) -> Variant | None:
    one.options["dynamic"] = True
    return one


def _training(one: Variant) -> Variant | None:
    """Every floating input takes a gradient. None where the micrograph is one of training already."""
    floats = [x for x in one.inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    if not floats or any(x.requires_grad for x in floats):
        return None
    for x in floats:
        x.requires_grad_(True)
    one.module.train()
    return one


def _in_dtype(dtype: torch.dtype) -> Callable[[Variant], Variant | None]:
    def change(one: Variant) -> Variant | None:
        floats = [x for x in one.inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
        if not floats or all(x.dtype is dtype for x in floats):
            return None
        one.module.to(dtype)
        cast = [x.detach().to(dtype).requires_grad_(x.requires_grad) if _floating(x) else x for x in one.inputs]
        one.inputs = tuple(cast)
        return one

    return change


def _floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _transposed(one: Variant) -> Variant | None:
    """Inputs of two and more dims lie in memory with their last two dims swapped."""
    changed = [_swapped(x) if isinstance(x, torch.Tensor) and x.dim() > 1 else x for x in one.inputs]
    if all(a is b for a, b in zip(changed, one.inputs, strict=True)):
        return None
    one.inputs = tuple(changed)
    return one


def _swapped(x: torch.Tensor) -> torch.Tensor:
    swapped = x.detach().transpose(-1, -2).contiguous().transpose(-1, -2)
    return swapped.requires_grad_(x.requires_grad)


CHANGES: dict[str, Callable[[Variant], Variant | None]] = {
    "dynamic sizes": _dynamic,
    "training": _training,
    "float32": _in_dtype(torch.float32),
    "bfloat16": _in_dtype(torch.bfloat16),
    "float16": _in_dtype(torch.float16),
    "transposed": _transposed,
}


def variants(cls: type[Micrograph]) -> Iterator[Variant]:
    """The variants that this micrograph has."""
    for name, change in CHANGES.items():
        made = change(base(cls))
        if made is not None:
            made.name = name
            yield made
