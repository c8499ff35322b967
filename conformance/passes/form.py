"""A graph as plain data: printed, saved as JSON, compared between versions of torch, and matched without torch.

An `Op` is one node. Its arguments are plain values, lists, and `Ref`s to other nodes. Everything that is no number, string, list or None
(dtypes, devices, symbolic sizes) stands as its text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance.errors import program_line
from conformance.graphs import op_name

PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Ref:
    """Another node, as an argument."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass
class Op:
    """One node. `kind` is call, input, attribute or output; `dtype` and `shape` are those of its value, where it has one."""

    name: str
    kind: str
    target: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dtype: str = ""
    shape: tuple[Any, ...] | None = None
    stride: tuple[Any, ...] | None = None
    where: str = ""  # the line of the program
    users: list[str] = field(default_factory=list)

    def inputs(self) -> list[str]:
        """The nodes among its arguments, in order."""
        return list(refs((self.args, tuple(self.kwargs.values()))))

    def call(self) -> str:
        """`aten.add.Tensor(mul, 1e-06)`"""
        said = [shown(a) for a in self.args] + [f"{k}={shown(v)}" for k, v in self.kwargs.items()]
        return f"{self.target}({', '.join(said)})"

    def value(self) -> str:
        """`f32[2, 7, 64]`"""
        if self.shape is None:
            return ""
        return f"{short_dtype(self.dtype)}[{', '.join(map(str, self.shape))}]"

    def line(self) -> str:
        said = f": {self.value()}" if self.shape is not None else ""
        if self.kind == "input":
            return f"{self.name}{said} (input)"
        if self.kind == "output":
            return f"return {', '.join(shown(a) for a in self.args)}"
        return f"{self.name}{said} = {self.call()}"


class Form:
    """A graph as plain data: its ops by name, in order."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = {op.name: op for op in ops}
        for op in ops:
            op.users = []
        for op in ops:
            for name in dict.fromkeys(op.inputs()):
                if name in self.ops:
                    self.ops[name].users.append(op.name)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops.values())

    def __getitem__(self, name: str) -> Op:
        return self.ops[name]

    def calls(self) -> list[Op]:
        return [op for op in self if op.kind == "call"]

    def text(self) -> str:
        return "\n".join(op.line() for op in self)

    def canonical(self) -> str:
        """The text with nodes numbered in order: the same for two graphs that differ in names alone."""
        numbers = {name: f"%{index}" for index, name in enumerate(self.ops)}
        lines = []
        for op in self:
            args, kwargs = renamed(op.args, numbers), renamed(op.kwargs, numbers)
            same = Op(
                numbers[op.name], op.kind, op.target if op.kind == "call" else "", args, kwargs, op.dtype, op.shape
            )
            lines.append(same.line())
        return "\n".join(lines)

    def around(self, names: Sequence[str], distance: int = 1) -> list[Op]:
        """These nodes and those up to some edges away, in order."""
        near = {name for name in names if name in self.ops}
        for _ in range(distance):
            near |= {other for name in near for other in (*self[name].inputs(), *self[name].users) if other in self.ops}
        return [op for op in self if op.name in near and op.kind != "output"]

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {
                "name": op.name,
                "kind": op.kind,
                "target": op.target,
                "args": _plain(op.args),
                "kwargs": _plain(op.kwargs),
                "dtype": op.dtype,
                "shape": op.shape,
                "stride": op.stride,
                "where": op.where,
            }
            for op in self
        ]

    @classmethod
    def from_json(cls, data: Sequence[Mapping[str, Any]]) -> Form:
        ops = []
        for item in data:
            shape, stride = item["shape"], item["stride"]
            ops.append(
                Op(
                    item["name"],
                    item["kind"],
                    item["target"],
                    tuple(_rich(item["args"])),
                    dict(_rich(item["kwargs"])),
                    item["dtype"],
                    None if shape is None else tuple(shape),
                    None if stride is None else tuple(stride),
                    item["where"],
                )
            )
        return cls(ops)


# ------------------------------------------------------------------------------------------------- from FX

KINDS = {"placeholder": "input", "get_attr": "attribute", "output": "output"}


def form_of(graph: fx.Graph | fx.GraphModule) -> Form:
    graph = graph.graph if isinstance(graph, fx.GraphModule) else graph
    return Form([_op(node) for node in graph.nodes])


def _op(node: fx.Node) -> Op:
    value = node.meta.get("val", node.meta.get("example_value"))
    tensor = value if isinstance(value, torch.Tensor) else None
    target = op_name(node.target) if node.op.startswith("call") else str(node.target)
    args = tuple(plain(a) for a in node.args)
    if node.op == "output":
        args = tuple(args[0]) if isinstance(args[0], tuple) else args
    return Op(
        node.name,
        KINDS.get(node.op, "call"),
        target,
        args,
        {name: plain(a) for name, a in node.kwargs.items()},
        str(tensor.dtype).removeprefix("torch.") if tensor is not None else "",
        tuple(map(_size, tensor.shape)) if tensor is not None else None,
        _strides(tensor) if tensor is not None else None,
        program_line(node.stack_trace or ""),
    )


def plain(value: Any) -> Any:
    """An argument of a node as plain data."""
    if isinstance(value, fx.Node):
        return Ref(value.name)
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if type(value) in PLAIN:
        return value
    if isinstance(value, slice):
        return f"slice({plain(value.start)}, {plain(value.stop)}, {plain(value.step)})"
    return op_name(value) if callable(value) and not isinstance(value, type) else str(value).removeprefix("torch.")


def _size(size: Any) -> Any:
    return size if isinstance(size, int) else str(size)


def _strides(value: torch.Tensor) -> tuple[Any, ...] | None:
    try:
        return tuple(map(_size, value.stride()))
    except (RuntimeError, NotImplementedError):  # a sparse or nested tensor has none
        return None


# ------------------------------------------------------------------------------------------------- helpers

SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def short_dtype(name: str) -> str:
    """`float32` → `f32`"""
    match = re.fullmatch(r"([a-z]+)(\d+)(.*)", name)
    return f"{SHORT.get(match[1], match[1])}{match[2]}{match[3]}" if match else name


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from refs(each)
    elif isinstance(value, dict):
        yield from refs(tuple(value.values()))


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The value with each node by another name."""
    if isinstance(value, Ref):
        return Ref(names.get(value.name, value.name))
    if isinstance(value, (list, tuple)):
        return tuple(renamed(v, names) for v in value)
    if isinstance(value, dict):
        return {k: renamed(v, names) for k, v in value.items()}
    return value


def shown(value: Any) -> str:
    """An argument as people read it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return str(value) if isinstance(value, (Ref, str)) else repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Ref):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        return Ref(value["node"]) if set(value) == {"node"} else {k: _rich(v) for k, v in value.items()}
    if isinstance(value, list):
        return tuple(_rich(v) for v in value)
    return value


def difference(before: Form, after: Form, context: int = 2) -> list[str]:
    """The two graphs as a diff: lines that begin with `-` were taken away, with `+` put in."""
    lines = difflib.unified_diff(before.text().splitlines(), after.text().splitlines(), lineterm="", n=context)
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


def side_by_side(left: Sequence[Op], right: Sequence[Op], titles: tuple[str, str], width: int = 58) -> list[str]:
    """Two pieces of graphs beside each other; lines that differ are marked with `|`."""
    one, two = [op.line() for op in left], [op.line() for op in right]
    said = [f"{titles[0]:<{width}}   {titles[1]}"]
    numbers = [{op.name: f"%{i}" for i, op in enumerate(side)} for side in (left, right)]
    keys = [[_key(op, names) for op in side] for side, names in zip((left, right), numbers, strict=True)]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        for index in range(max(b - a, d - c)):
            first = one[a + index] if a + index < b else ""
            second = two[c + index] if c + index < d else ""
            said.append(f"{first[:width]:<{width}} {' ' if tag == 'equal' else '|'} {second[:width]}".rstrip())
    return said


def _key(op: Op, names: Mapping[str, str]) -> str:
    constants = [shown(a) for a in op.args if not isinstance(a, Ref)]
    return f"{op.kind} {op.target if op.kind == 'call' else ''} {constants} {op.value()}"
