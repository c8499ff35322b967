"""Inputs and constants as people write them where they do not matter: small sizes, float32 and int64, round numbers."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import fx

from conformance.triage.subgraph import CALLS, called

Place = tuple[int, int | str]  # a node by its number, an argument by its position or name
Number = int | float


def all_shortened(inputs: tuple[Any, ...], small: int) -> tuple[Any, ...]:
    """The inputs with every long dim cut to `small`. Sizes a little above `small` are left alone: nothing would be gained."""
    for length in sorted({n for x in inputs if isinstance(x, torch.Tensor) for n in x.shape if n > small + 3}):
        inputs = tuple(shortened(x, length, small) for x in inputs)
    return inputs


def same_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Have the tensors of both the same shapes?"""
    return all(not isinstance(x, torch.Tensor) or x.shape == y.shape for x, y in zip(a, b, strict=True))


def shortened(value: Any, length: int, shorter: int) -> Any:
    """A tensor with every dim of this length cut to `shorter`."""
    if not isinstance(value, torch.Tensor) or length not in value.shape:
        return value
    for dim, have in enumerate(value.shape):
        if have == length:
            value = value.narrow(dim, 0, shorter)
    return value.clone(memory_format=torch.preserve_format)


def is_finite(value: torch.Tensor) -> bool:
    """Is every element? Eight-bit floats cannot be asked themselves."""
    return bool((value.double() if value.is_floating_point() else value).isfinite().all())


def plain_dtype(value: Any) -> torch.dtype | None:
    """The dtype that people use where it does not matter; None where it is that already, or of another family."""
    if not isinstance(value, torch.Tensor):
        return None
    plain = {True: torch.float32, False: torch.int64}[value.is_floating_point()]
    return None if value.dtype in (plain, torch.bool) or value.is_complex() else plain


def odd_constants(gm: fx.GraphModule) -> dict[Place, Number]:
    """Numbers of more than one digit among the arguments. Those inside lists and slices are sizes and indices."""
    found: dict[Place, Number] = {}
    for number, node in enumerate(gm.graph.nodes):
        if node.op in CALLS and called(node) != "getitem":
            given = [
                *enumerate(node.args),
                *((k, v) for k, v in node.kwargs.items() if k not in ("dim", "axis", "dims")),
            ]
            found |= {(number, where): value for where, value in given if _is_odd(value)}
    return found


def _is_odd(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and float(f"{value:.0e}") != value


def plain_numbers(value: Number) -> list[Number]:
    """Of the same type, the plainest first."""
    kind = type(value)
    return list(dict.fromkeys(kind(n) for n in (1, 2, float(f"{value:.0e}"), 0.5, 0) if kind(n) == n))


def with_constants(gm: fx.GraphModule, changes: dict[Place, Number]) -> fx.GraphModule:
    """A copy of the graph with other numbers in these places."""
    graph = copy.deepcopy(gm.graph)
    nodes = list(graph.nodes)
    for (number, where), value in changes.items():
        if isinstance(where, int):
            nodes[number].update_arg(where, value)
        else:
            nodes[number].update_kwarg(where, value)
    return fx.GraphModule(gm, graph)
