"""Export a micrograph the way AutoDeploy does."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from conformance import scenario
from conformance.backends.autodeploy import fake_cuda
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.base import Case
from conformance.errors import first_line
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph


class Unsupported(Exception):
    """torch.export cannot take this micrograph; AutoDeploy has no other way in."""


@dataclass
class Captured:
    gm: fx.GraphModule
    dynamic: list[str] = field(default_factory=list)  # dims that the graph serves at any size
    specialized: list[str] = field(default_factory=list)  # dims that were asked for and that the graph fixed


def capture(loaded: Loaded, case: Case, module: nn.Module) -> Captured:
    micrograph = case.micrograph
    if any(isinstance(spec, Tensor) and spec.grad for spec in micrograph.inputs):
        raise Unsupported("AutoDeploy compiles for inference: no gradients")
    inputs = case.inputs()
    if why := scenario.not_callable(module, inputs):
        raise Unsupported(f"torch.export needs the arguments of the call: {why}")
    asked = {*micrograph.contract.capture.recompiles, *micrograph.contract.capture.dynamic}
    shapes = dynamic_shapes(micrograph, module, asked)
    try:
        with loaded.active(), fake_cuda.answers():
            gm = loaded.seam.export(module, args=inputs, clone=False, dynamic_shapes=shapes)
    except Exception as error:
        refused = plain_export(micrograph, case, shapes)
        if refused:
            raise Unsupported(f"torch.export cannot take it: {refused}") from None
        raise error
    devices_on_meta(gm)
    dynamic = symbolic(gm, micrograph)
    return Captured(gm, sorted(asked & dynamic), sorted(asked - dynamic))


def devices_on_meta(gm: fx.GraphModule) -> None:
    """AutoDeploy exports a model before its weights are loaded, so that devices in the graph say `meta` until then.
    Here the weights are there already and it would write theirs, which the next shape propagation on `meta` does not
    agree
    with."""
    meta = torch.device("meta")
    for node in gm.graph.nodes:
        if isinstance(node.kwargs.get("device"), torch.device):
            node.kwargs = {**node.kwargs, "device": meta}
        if node.target is torch.ops.aten.to.device:
            node.args = (node.args[0], meta, *node.args[2:])
    gm.recompile()


def dynamic_shapes(micrograph: type[Micrograph], module: nn.Module, asked: set[str]) -> Any:
    """Every dim whose size is made of a dim that the contract varies; export may still find that it must be fixed."""
    rows: list[Any] = []
    for spec in micrograph.inputs:
        names = spec.names() if isinstance(spec, Tensor) else ()
        rows.append({i: torch.export.Dim.AUTO for i, term in enumerate(names) if asked & _words(term)} or None)
    if not any(rows):
        return None
    kinds = [parameter.kind for parameter in inspect.signature(module.forward).parameters.values()]
    return (tuple(rows),) if kinds == [inspect.Parameter.VAR_POSITIONAL] else tuple(rows)


def _words(term: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in term).split())


def symbolic(gm: fx.GraphModule, micrograph: type[Micrograph]) -> set[str]:
    """The named dims that no input of the graph fixes."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    free: set[str] = set()
    fixed: set[str] = set()
    for node, spec in zip(placeholders, micrograph.inputs, strict=False):
        value = node.meta.get("val")
        if isinstance(spec, Tensor) and isinstance(value, torch.Tensor):
            for name, size in zip(spec.names(), value.shape, strict=False):
                (fixed if isinstance(size, int) else free).add(name)
    return free - fixed


def plain_export(micrograph: type[Micrograph], case: Case, shapes: Any) -> str:
    """Why plain torch.export refuses the same module; empty when it takes it, so that the fault is AutoDeploy's."""
    try:
        with torch.no_grad():
            torch.export.export(case.module(), case.inputs(), dynamic_shapes=shapes, strict=False)
    except Exception as error:
        return first_line(error, 200)
    return ""
