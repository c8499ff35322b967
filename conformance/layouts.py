"""Layouts: where the elements of a tensor lie in its storage. One table for micrographs, operators and fuzzing."""

from __future__ import annotations

from collections.abc import Callable

from conformance.errors import UsageError, unknown

# Simplest first: a failure shrinks towards the front.
LAYOUTS = (
    "contiguous",
    "offset",  # three elements into the storage
    "transposed",  # the last two dims swapped
    "permuted",  # all dims in reverse order
    "strided",  # every other element of the last dim
    "sliced",  # cut out of the middle of something larger, in every dim
    "expanded",  # the first dim has stride 0
    "expanded_last",  # the last dim has stride 0
    "channels_last",
    "channels_last_3d",
    "overlapping",  # a sliding window: rows share all elements but one
)
REPEATS = ("expanded", "expanded_last", "overlapping")  # more elements than storage: nothing may write to them


RANKS = {
    "contiguous": 0,
    "offset": 0,
    "transposed": 2,
    "permuted": 3,
    "channels_last": 4,
    "channels_last_3d": 5,
    "overlapping": 2,
}


def possible(layout: str, rank: int) -> bool:
    """Can a tensor of this rank have the layout?"""
    needed = RANKS.get(layout, 1)
    return rank == needed if layout.startswith("channels_last") else rank >= needed


def _dense(sizes: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _in_order(sizes: tuple[int, ...], order: list[int]) -> list[int]:
    """Dense strides when dims are laid out in this order, outermost first."""
    dense = _dense(tuple(sizes[dim] for dim in order))
    return [dense[order.index(dim)] for dim in range(len(sizes))]


def _transposed(sizes: tuple[int, ...]) -> list[int]:
    rank = len(sizes)
    return _in_order(sizes, [*range(rank - 2), rank - 1, rank - 2])


def _expanded(sizes: tuple[int, ...], dim: int) -> list[int]:
    strides = _dense(tuple(1 if i == dim % len(sizes) else size for i, size in enumerate(sizes)))
    strides[dim] = 0
    return strides


STRIDES: dict[str, Callable[[tuple[int, ...]], list[int]]] = {
    "contiguous": _dense,
    "offset": _dense,
    "transposed": _transposed,
    "permuted": lambda sizes: _in_order(sizes, [*range(len(sizes))][::-1]),
    "strided": lambda sizes: [2 * stride for stride in _dense(sizes)],
    "sliced": lambda sizes: _dense(tuple(size + 2 for size in sizes)),
    "expanded": lambda sizes: _expanded(sizes, 0),
    "expanded_last": lambda sizes: _expanded(sizes, -1),
    "channels_last": lambda sizes: _in_order(sizes, [0, 2, 3, 1]),
    "channels_last_3d": lambda sizes: _in_order(sizes, [0, 2, 3, 4, 1]),
    "overlapping": lambda sizes: [*_dense(sizes)[:-2], 1, 1],
}


def place(layout: str, sizes: tuple[int, ...]) -> tuple[list[int], int, int]:
    """Strides, storage offset, and how many elements the storage needs."""
    if layout not in STRIDES:
        raise unknown("layout", layout, LAYOUTS)
    if not possible(layout, len(sizes)):
        raise UsageError(f"no {layout} tensor has {len(sizes)} dims")
    strides = STRIDES[layout](sizes)
    offset = {"offset": 3, "sliced": sum(strides)}.get(layout, 0)
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if 0 not in sizes else -1
    return strides, offset, offset + last + 1
