"""Parts of a graph that run on their own, with the values that they get in the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from conformance import graphs

CALLS = ("call_function", "call_method", "call_module")


def cut(
    gm: fx.GraphModule, kept: Sequence[fx.Node], values: dict[fx.Node, Any]
) -> tuple[fx.GraphModule, tuple[Any, ...]] | None:
    """A graph of these nodes alone: what they read from others becomes an input, what nobody among them reads an output."""
    chosen = set(kept)
    graph = fx.Graph()
    table: dict[Any, Any] = {}
    inputs: list[Any] = []

    def outside(node: fx.Node) -> Any:
        value = values[node]
        if not isinstance(value, torch.Tensor):
            return value
        table[node] = graph.placeholder(f"x{len(inputs)}")
        inputs.append(value)
        return table[node]

    def look(node: fx.Node) -> Any:
        return table[node] if node in table else outside(node)

    for node in kept:
        for source in node.all_input_nodes:
            if source not in chosen and source not in table and isinstance(values.get(source), torch.Tensor):
                outside(source)
    try:
        for node in kept:
            table[node] = graph.node_copy(node, look)
    except KeyError:
        return None
    ends = [n for n in kept if not any(user in chosen for user in n.users) and isinstance(values.get(n), torch.Tensor)]
    if not ends or not inputs:
        return None
    graph.output(tuple(table[n] for n in ends))
    found = fx.GraphModule(gm, graph)
    return found, tuple(inputs)


def word(name: str) -> str:
    """`aten._softmax.default` → `softmax`"""
    parts = name.split(".")
    return (parts[1] if parts[0] in ("aten", "prims", "operator") and len(parts) > 1 else parts[-1]).strip("_")


def called(node: fx.Node) -> str:
    """The op that a node calls, in one word."""
    return word(graphs.op_name(node.target))
