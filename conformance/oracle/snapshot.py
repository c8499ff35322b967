"""Python values, flattened into paths and leaves, so that two of them can be compared: lists, dicts, objects, closures, tensors inside."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    torch.dtype,
    torch.device,
    torch.Size,
    torch.layout,
    torch.memory_format,
)
DEEPEST = 12


def snapshot(value: Any, name: str = "") -> dict[str, Any]:
    """Path → leaf. Tensors are detached clones; what is no plain value, container or object is shown by its type."""
    return dict(_leaves(value, name, set(), 0))


def _leaves(value: Any, path: str, inside: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, value.detach().clone(memory_format=torch.preserve_format)
        return
    if isinstance(value, PLAIN):
        yield path, value
        return
    if id(value) in inside or depth > DEEPEST:
        yield path, "(a cycle)" if id(value) in inside else "(too deep)"
        return
    inside = inside | {id(value)}
    parts = list(_parts(value))
    yield f"{path}: type", _type_name(value)
    for part, child in parts:
        yield from _leaves(child, f"{path}{part}", inside, depth + 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield ": keys", [str(key) for key in value]  # their order is part of what a program sees
        for key, child in value.items():
            yield f"[{key!r}]", child
    elif isinstance(value, (list, tuple)):
        yield ": length", len(value)
        for index, child in enumerate(value):
            yield f"[{index}]", child
    elif isinstance(value, (set, frozenset)):
        yield ": elements", sorted(map(repr, value))
    elif isinstance(value, types.FunctionType):
        for cell, name in zip(value.__closure__ or (), value.__code__.co_freevars, strict=True):
            yield f".closure[{name}]", _cell(cell)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name, None)
    elif isinstance(value, BaseException):
        yield ".args", [str(argument) for argument in value.args]
    elif not isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, types.MethodType)):
        for name, child in sorted(getattr(value, "__dict__", {}).items()):
            yield f".{name}", child


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "(empty)"


def _type_name(value: Any) -> str:
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
