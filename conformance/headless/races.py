"""Does a kernel give the same in whatever order the programs of its grid run?

A GPU runs them side by side. Here they run one after another, so that a program which reads what another one writes
would always see the same of it. Run in another order, it sees something else: the kernel has a race.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import torch

from conformance.headless.interpret import IN_ORDER, REVERSED, SHUFFLED

# Not where a program is run again that was asked before: each order is a launch, and a launch may take seconds.
ASKED = ContextVar("ASKED", default=True)


def found(launch: Callable[[str], None], tensors: dict[str, torch.Tensor], atomic: bool) -> list[str]:
    """Launch the kernel in three orders of its programs; the memory is left as the usual one leaves it. Returns a line
    for each order and tensor that came out otherwise.

    tensors   the arguments of the kernel, by name
    atomic    programs add to the same places: the order of the sums, and so their rounding, may differ"""
    memory = _storages(tensors)
    before = [storage.clone() for storage in memory]
    launch(IN_ORDER)
    after = [storage.clone() for storage in memory]
    values = {name: tensor.clone() for name, tensor in tensors.items()}
    lines = []
    for order in (REVERSED, SHUFFLED):
        _put(memory, before)
        launch(order)
        lines += [
            f"{name} depends on the order of the programs ({order})"
            for name in tensors
            if _differ(tensors[name], values[name], atomic)
        ]
    _put(memory, after)
    return lines


def _storages(tensors: dict[str, torch.Tensor]) -> list[torch.UntypedStorage]:
    """The memory of the tensors, each once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors.values()}
    return list(storages.values())


def _put(memory: list[torch.UntypedStorage], content: list[torch.UntypedStorage]) -> None:
    for storage, kept in zip(memory, content, strict=True):
        storage.copy_(kept)


def _differ(one: torch.Tensor, other: torch.Tensor, atomic: bool) -> bool:
    if not atomic or not one.is_floating_point():
        return not torch.equal(_bytes(one), _bytes(other))
    # Places that no program wrote hold whatever was in the memory: only those that came out otherwise give the scale.
    moved = ~torch.isclose(one, other, rtol=0.0, atol=0.0, equal_nan=True)
    if not bool(moved.any()):
        return False
    tolerance = torch.finfo(one.dtype).eps ** 0.5
    scale = float(other[moved].abs().nan_to_num(0.0, 0.0, 0.0).max())
    return not torch.allclose(one[moved], other[moved], rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
