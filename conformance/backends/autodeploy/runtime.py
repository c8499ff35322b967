"""AutoDeploy's compile backends: what turns the last graph into something to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy import nogpu
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.base import Case
from conformance.micrograph import Tensor
from conformance.trace import Observation
from conformance.verdict import Verdict

BACKENDS = ("torch-simple", "torch-compile", "torch-cudagraph", "torch-opt")
NO_CACHE = "the compile backend {name} keeps no compiled program"


@dataclass
class Chosen:
    name: str
    program: Callable[..., Any]
    cache: Observation = field(default_factory=Observation)
    fallback: str = ""  # why it is not the compile backend that was asked for


def uncapturable(gm: fx.GraphModule) -> str:
    """An op whose work the host decides: a CUDA graph cannot hold it, and trying leaves the process unable to capture."""
    data = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"{node.target.name()} decides on the host what runs"
        if isinstance(node.target, torch._ops.OpOverload) and data & {*node.target.tags}:
            return f"{node.target} depends on data"
    return ""


def compile_backend(loaded: Loaded, gm: fx.GraphModule, case: Case, option: str, name: str = "") -> Chosen:
    """The program of one compile backend: torch-simple where there is no GPU, CUDA graphs where there is one."""
    name = name or ("torch-cudagraph" if case.target.name == "cuda" else "torch-simple")
    why = uncapturable(gm) if name == "torch-cudagraph" else ""
    name = "torch-simple" if why else name
    with loaded.active(), nogpu.answers(), torch.no_grad():
        registry = loaded.module("compile.compiler").CompileBackendRegistry
        made = registry.get(name)(gm, **settings(name, case))
        program = made.compile()
    return Chosen(name, program, cache_observation(name, program), why)


def settings(name: str, case: Case) -> dict[str, Any]:
    """CUDA graphs are captured per batch size: the first named dim of the first input."""
    if name not in ("torch-cudagraph", "torch-opt"):
        return {}
    dim = batch_dim(case)
    size = {**case.micrograph.dims, **case.sizes}.get(dim, 1) if dim else 1

    def arguments(batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return case.inputs(**({dim: batch} if dim else {})), {}

    return {
        "get_args_kwargs_for_compile": arguments,
        "cuda_graph_batch_sizes": [size],
        "num_batched_inputs": len(case.micrograph.inputs),
        "piecewise_enabled": False,
    }


def batch_dim(case: Case) -> str:
    """A dim that the graph serves at any size, so that another batch size can be captured."""
    contract = case.micrograph.contract.capture
    free = {*contract.recompiles, *contract.dynamic}
    for spec in case.micrograph.inputs:
        if isinstance(spec, Tensor):
            for term in spec.names():
                if term in free:
                    return term
    return ""


def cache_observation(name: str, program: Any) -> Observation:
    """What can be seen of a cache: how many graphs were captured, and for which shapes."""
    captured = getattr(program, "cudagraphs", None)
    if captured is None:
        return Observation.says(Verdict.UNAVAILABLE, NO_CACHE.format(name=name))
    return Observation(facts={"captured": len(captured), "shapes": [list(shape) for shape in captured]})
