"""Reads that a write came before: what fusing in place can get wrong."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy.seam import outside
from conformance.torch_seam import OpOverload, OpOverloadPacket, TorchDispatchMode, schema_of, storage_key


class _Writes(TorchDispatchMode):
    """Which tensors do the ops that run here write into?"""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for index, argument in enumerate(schema_of(func).arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[index] if index < len(args) else kwargs.get(argument.name)
                if isinstance(value, torch.Tensor):
                    self.written.add(storage_key(value))
        return func(*args, **kwargs)


def written_by(node: fx.Node) -> list[fx.Node]:
    """The arguments that a call writes into: from the op's schema, or, for a plain function, by watching it run on
    tensors without data."""
    if node.op != "call_function":
        return []
    schema = schema_of(node.target)
    if isinstance(node.target, OpOverload) and schema is not None:
        named = {**{a.name: v for a, v in zip(schema.arguments, node.args, strict=False)}, **node.kwargs}
        writes = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        return [named[name] for name in writes if isinstance(named.get(name), fx.Node)]  # type: ignore[misc]
    if isinstance(node.target, OpOverloadPacket) or "auto_deploy" not in str(getattr(node.target, "__module__", "")):
        return []
    return _watched(node)


def _watched(node: fx.Node) -> list[fx.Node]:
    tensors: dict[fx.Node, Any] = {n: n.meta.get("val") for n in node.all_input_nodes}
    mode = next((t.fake_mode for t in tensors.values() if isinstance(t, outside.fake_tensor)), None)
    if mode is None or not all(isinstance(t, torch.Tensor) for t in tensors.values()):
        return []
    writes = _Writes()
    with mode:
        stand_ins = {
            n: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for n, t in tensors.items()
        }
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: stand_ins[n])
        try:
            with writes:
                node.target(*args, **kwargs)  # type: ignore[operator]
        except Exception:
            return []
    return [n for n, t in stand_ins.items() if storage_key(t) in writes.written]


def lost_reads(gm: fx.GraphModule, known: Collection[str] = ()) -> list[str]:
    """`x is read by mul after fused_add wrote into it`: the value that mul was to see is gone.

    known   nodes that the program had from the start, whose writes are its own affair"""
    order = {node: index for index, node in enumerate(gm.graph.nodes)}
    found = []
    for node in gm.graph.nodes:
        for written in written_by(node) if node.name not in known else ():
            for reader in written.users:
                if order[reader] > order[node] and not _writes_back(reader, written):
                    found.append(f"{written.name} is read by {reader.name} after {node.name} wrote into it")
    return found


def overwritten(gm: fx.GraphModule, known: Collection[str] = ()) -> list[int]:
    """Inputs of the graph that nodes write into which the program did not have."""
    places = [node for node in gm.graph.nodes if node.op == "placeholder"]
    written = {w for node in gm.graph.nodes if node.name not in known for w in written_by(node)}
    return [index for index, place in enumerate(places) if place in written]


def _writes_back(reader: fx.Node, written: fx.Node) -> bool:
    """`copy_` into an input at the end of a graph overwrites it, and does not read it."""
    return reader.target is torch.ops.aten.copy_.default and reader.args[0] is written
