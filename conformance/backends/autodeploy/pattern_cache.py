"""Remembers the traces of AutoDeploy's search patterns.

Every `match_*` transform exports its patterns anew for every graph, which is most of the time it takes. A pattern is a
plain function over example tensors, so that its trace is the same as long as its code, what it closes over and the
examples are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy import graph
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.autodeploy.seam import outside
from conformance.torch_seam import OpOverload, OpOverloadPacket

PLAIN = (int, float, str, bool, type(None), torch.dtype, OpOverload, OpOverloadPacket)


class NoKey(Exception):
    """Not known to be the same next time."""


_traces: dict[Any, fx.GraphModule] = {}


@contextmanager
def remembered(loaded: Loaded) -> Iterator[None]:
    """Inside, a pattern that was exported before is not exported again."""
    if not loaded.seam.has("export_pattern"):
        yield
        return

    def export(
        proceed: Callable[..., Any], module: Any, args: tuple[Any, ...], *rest: Any, **more: Any
    ) -> fx.GraphModule:
        try:
            key = (function_key(getattr(module, "fn", None)), tuple(map(value_key, args)))
            if rest or more:
                raise NoKey
        except NoKey:
            made: fx.GraphModule = proceed(module, args, *rest, **more)
            return made
        if key not in _traces:
            _traces[key] = proceed(module, args)
        return graph.copied(_traces[key])

    with loaded.seam.subscribe(export_pattern=export):
        yield


def function_key(function: Any) -> Any:
    if isinstance(function, functools.partial):
        keywords = tuple((name, value_key(value)) for name, value in sorted(function.keywords.items()))
        return ("partial", function_key(function.func), tuple(map(value_key, function.args)), keywords)
    if not inspect.isfunction(function):
        raise NoKey
    cells = tuple(value_key(cell.cell_contents) for cell in function.__closure__ or ())
    defaults = tuple(map(value_key, function.__defaults__ or ()))
    return (function.__module__, function.__qualname__, function.__code__, id(function.__globals__), cells, defaults)


def value_key(value: Any) -> Any:
    if isinstance(value, outside.fake_tensor):
        raise NoKey
    if isinstance(value, torch.Tensor):
        return ("tensor", value.dtype, tuple(value.shape), value.stride(), str(value.device), value.requires_grad)
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(value_key, value))
    if isinstance(value, PLAIN):
        return (type(value).__name__, value)
    return function_key(value)
