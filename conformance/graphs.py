"""Reading FX graphs: the ops in them, as text, and what is odd about them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx

from conformance.torch_seam import OpOverload, schema_of

# Composite ops that AOTAutograd keeps on purpose, or that are no computation.
NOT_COMPOSITE = {"aten::sym_size", "aten::sym_stride", "aten::sym_numel", "aten::sym_storage_offset"}


def op_name(target: Any) -> str:
    """`aten.add.Tensor`, `relu`, `cond`: one name for an op, whatever made the graph."""
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        return str(target)
    name = getattr(target, "__name__", None) or str(target)
    module = getattr(target, "__module__", None) or ""
    return f"operator.{name}" if module == "_operator" else name


def copied(gm: fx.GraphModule) -> fx.GraphModule:
    """A copy whose graph later passes cannot change; tensors are shared."""
    twin = fx.GraphModule(gm, copy.deepcopy(gm.graph))
    twin.meta = dict(gm.meta)
    return twin


def graphs_of(gm: fx.GraphModule | None) -> list[fx.Graph]:
    """The graph and those of its subgraphs (branches and bodies of control flow)."""
    if gm is None:
        return []
    found = [gm.graph]
    for _, child in gm.named_children():
        if isinstance(child, fx.GraphModule):
            found += graphs_of(child)
    return found


def ops(gm: fx.GraphModule | None) -> Counter[str]:
    """How often each op is called."""
    calls = ("call_function", "call_method", "call_module")
    return Counter(
        op_name(n.target) for graph in graphs_of(gm) for n in graph.nodes if n.op in calls and n.target is not _getitem
    )


_getitem = __import__("operator").getitem


def count_ops(found: Iterable[fx.GraphModule | None]) -> dict[str, int]:
    """How often each op is called in all of the graphs, by name in order."""
    total: Counter[str] = Counter()
    for gm in found:
        total += ops(gm)
    return dict(sorted(total.items()))


def text(gm: fx.GraphModule | None) -> str:
    if gm is None:
        return ""
    try:
        return gm.print_readable(print_output=False)
    except Exception:  # a graph whose metadata was damaged can still be shown plainly
        return str(gm.graph)


def composite(gm: fx.GraphModule | None, has_kernel: Callable[[str, str], bool]) -> list[str]:
    """Ops that are made of others and should have been decomposed. `has_kernel(op, key)`: does torch have a kernel of the op for this
    dispatch key?"""
    found = []
    for graph in graphs_of(gm):
        for node in graph.nodes:
            target = node.target
            if not isinstance(target, OpOverload) or target.namespace != "aten":
                continue
            name = target.name()
            implicit = has_kernel(name, "CompositeImplicitAutograd")
            if implicit and name.split(".")[0] not in NOT_COMPOSITE and _computes(node) and not _of_a_number(node):
                found.append(str(target))
    return sorted(set(found))


def _computes(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.Tensor, list, tuple))


def _of_a_number(node: fx.Node) -> bool:
    """Written after the decomposition by the pass that makes tensors of symbolic numbers: no line of the program stands behind it."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dim() == 0 and not node.meta.get("stack_trace")


# They give a tensor other memory, as the caller's program does, and are no writes that functionalization left.
NOT_WRITES = ("aten.set_", "aten.shallow_copy_data_", "inductor")


def writes(gm: fx.GraphModule | None) -> list[str]:
    """Ops that write into one of their arguments, other than `copy_` into an input at the end."""
    found = []
    for graph in graphs_of(gm):
        placeholders = {n for n in graph.nodes if n.op in ("placeholder", "get_attr")}
        for node in graph.nodes:
            target = node.target
            if isinstance(target, OpOverload) and schema_of(target).is_mutable:
                epilogue = target is torch.ops.aten.copy_.default and node.args[0] in placeholders
                if not epilogue and not str(target).startswith(NOT_WRITES):
                    found.append(str(target))
    return sorted(set(found))


def written_inputs(gm: fx.GraphModule | None) -> int:
    """How many inputs the graph writes to: by a final `copy_`, or in place, through views too."""
    if gm is None:
        return 0
    roots = {_root(value) for node in gm.graph.nodes for value in _written(node)}
    return len({root for root in roots if root.op == "placeholder"})


def _written(node: fx.Node) -> list[fx.Node]:
    """The arguments that a node writes into."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, OpOverload) or not schema_of(target).is_mutable:
        return []
    found: list[fx.Node] = []
    for index, argument in enumerate(schema_of(target).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
            values = value if isinstance(value, (list, tuple)) else [value]
            found += [v for v in values if isinstance(v, fx.Node)]
    return found


def _root(node: fx.Node) -> fx.Node:
    """What a chain of views is a view of."""
    while node.op == "call_function" and isinstance(node.target, OpOverload):
        arguments = schema_of(node.target).arguments
        views = [i for i, a in enumerate(arguments) if a.alias_info is not None]
        if not views or views[0] >= len(node.args) or not isinstance(node.args[views[0]], fx.Node):
            break
        node = node.args[views[0]]  # type: ignore[assignment]
    return node


def without_metadata(gm: fx.GraphModule | None) -> list[str]:
    """Nodes that compute something, but do not say of what shape and dtype. A write that nobody reads computes nothing: those
    which torch.export puts at the end of a graph say nothing."""
    if gm is None:
        return []
    return [
        node.name
        for node in gm.graph.nodes
        if node.op == "call_function"
        and isinstance(node.target, OpOverload)
        and schema_of(node.target).returns
        and "val" not in node.meta
        and (node.users or not schema_of(node.target).is_mutable)
    ]
