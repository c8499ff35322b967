"""Which ops of a graph should have been decomposed, by torch's own tables."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import fx

from conformance.backends.inductor.seam import seam
from conformance.graphs import graphs_of
from conformance.torch_seam import OpOverload, pytree

# Ops that Inductor hands to the library although torch could decompose them.
WHOLE = {
    "aten._scaled_dot_product_flash_attention_for_cpu.default",
    "aten.polar.default",
    "aten.complex.default",
    "aten.gcd.default",  # its decomposition is one primitive of the same name
}
# The same for a dtype alone. Adding bfloat16 atomically is slow (pytorch#137425).
WHOLE_IN = {"aten.index_add.default": torch.bfloat16}


@cache
def _core() -> frozenset[Any]:
    """The ops that torch decomposes for every compiler, less those that Inductor says it wants whole. Inductor's own table is not
    asked: it is what is being examined."""
    whole = {op for entry in seam.kept_whole for op in _overloads(entry)}
    return frozenset(seam.core_decompositions()) - whole


def _overloads(entry: Any) -> list[Any]:
    return [entry] if isinstance(entry, OpOverload) else [getattr(entry, name) for name in entry.overloads()]


def _has_lowering(op: Any) -> bool:
    """One of its own. A scan has one and falls back where the device has no scans, so that it is in both tables."""
    lowering = seam.lowerings.get(op)
    if lowering is None or op not in seam.fallbacks:
        return lowering is not None
    return "fallback" not in getattr(lowering, "__qualname__", "fallback")


def decomposable(gm: fx.GraphModule | None) -> list[str]:
    """Ops of the graph that should not be there any more: core ones, and those that Inductor could only hand to the library."""
    core, table = _core(), seam.decompositions

    def left(op: Any) -> bool:
        if op in core:
            return True
        random = torch.Tag.nondeterministic_seeded in op.tags  # drawn by eager's own ops, where draws must be equal
        return op in table and not _has_lowering(op) and str(op) not in WHOLE and not random

    nodes = (node for graph in graphs_of(gm) for node in graph.nodes if isinstance(node.target, OpOverload))
    return sorted(
        {str(node.target) for node in nodes if left(node.target) and not _left_whole(node) and not _declined(node)}
    )


def _declined(node: fx.Node) -> bool:
    """Does the decomposition itself say that it does not take these inputs? adaptive_max_pool3d's takes sizes that divide."""
    decomposition = seam.core_decompositions().get(node.target) or seam.decompositions.get(node.target)
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda given: given.meta.get("val"))
    tensors = [value for value in pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    mode = getattr(tensors[0], "fake_mode", None) if tensors else None
    if decomposition is None or mode is None:
        return False
    try:
        with mode:
            return decomposition(*args, **kwargs) is NotImplemented
    except Exception:
        return False  # what it cannot be asked about it has not declined


def _left_whole(node: fx.Node) -> bool:
    name = str(node.target)
    return name in WHOLE_IN and getattr(node.meta.get("val"), "dtype", None) == WHOLE_IN[name]
