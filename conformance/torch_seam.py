"""The names of torch that are private by their spelling and that every compiler's code shares: operators, pytrees, the
dispatch mode, and what a tensor says of its memory.

They belong to no one compiler, and without them nothing can be observed: they are imported here, once, and nowhere
else. What belongs to one compiler stands in the seam of that compiler.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "LARGE_MODULES",
    "PASSES_AND_LOWERINGS",
    "STATE_TABLES",
    "WRAP",
    "HigherOrderOperator",
    "OpOverload",
    "OpOverloadPacket",
    "TorchDispatchMode",
    "base_of",
    "buffers_of",
    "forget_dispatch",
    "in_dispatch_mode",
    "nesting_of",
    "pytree",
    "schema_of",
    "storage_key",
]

# Modules whose functions stand in a graph for how code is made of a pattern.
PASSES_AND_LOWERINGS = ("torch._inductor.fx_passes", "torch._inductor.mkldnn_lowerings")

# Modules that every run imports and that import most of torch's compilers.
LARGE_MODULES = ("torch._dynamo.symbolic_convert", "torch._inductor.compile_fx")
STATE_TABLES = ("_parameters", "_buffers")  # the attributes in which a module keeps its state, by name
WRAP = "torch.fx._symbolic_trace.wrap"  # a line of printed graphs: a function of the user's that is not traced


def _renew_thread_pool() -> None:
    """In a forked process: torch makes its pool of threads anew when it is first asked for. Where two threads ask at once, as when a
    backward pass starts, one finds none, and the process aborts ("Invalid thread pool!", 2.11 to 2.15). So it is asked for now. A process
    that is forked from this one makes its own: torch lets go of a pool whose threads a fork left behind."""
    torch.set_num_threads(torch.get_num_threads())


os.register_at_fork(after_in_child=_renew_thread_pool)


def in_dispatch_mode() -> bool:
    """Does a dispatch mode see every operator that is called here?"""
    return torch._C._len_torch_dispatch_stack() > 0


def schema_of(operator: Any) -> Any:
    """The schema of an operator: its name, arguments and results. None where it has none."""
    return getattr(operator, "_schema", None)


def storage_key(value: torch.Tensor | torch.UntypedStorage) -> int:
    """The same number for all tensors of one storage, also where a storage has no memory."""
    storage = value.untyped_storage() if isinstance(value, torch.Tensor) else value
    return int(storage._cdata)


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor that this one is a view of; None where it is no view."""
    return tensor._base if tensor._is_view() else None


def is_zerotensor(tensor: torch.Tensor) -> bool:
    """Is it all zeros, and without memory? Derivatives make such tensors."""
    return tensor._is_zerotensor()


def buffers_of(module: Any) -> dict[str, Any]:
    """The buffers of a module itself, by name: assigning here binds one anew. Empty for what is no module."""
    return getattr(module, "_buffers", {})


def nesting_of(graph: fx.Graph) -> Any:
    """How the caller's inputs and outputs are nested; None where the graph takes and returns flat ones."""
    return getattr(graph._codegen, "pytree_info", None)


def forget_dispatch(operator: OpOverload) -> None:
    """Let an operator look up its kernels again: one was registered, or taken away."""
    operator._dispatch_cache.clear()
