"""AutoDeploy's compile backends: what turns the last graph into something to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from conformance import oracle
from conformance.backends.autodeploy import nogpu
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.autodeploy.passes import listening
from conformance.backends.base import Case
from conformance.errors import first_line
from conformance.micrograph import Tensor
from conformance.trace import Observation
from conformance.verdict import Verdict

BACKENDS = ("torch-simple", "torch-compile", "torch-cudagraph", "torch-opt")
RECORDING = ("torch-cudagraph", "torch-opt")  # what runs is a recording: it is replayed, into memory of its own
NO_CACHE = "the compile backend {name} keeps no compiled program"


@dataclass
class Chosen:
    name: str
    program: Callable[..., Any]
    cache: Observation = field(default_factory=Observation)
    fallback: str = ""  # why it is not the compile backend that was asked for
    plain: list[int] = field(default_factory=list)  # calls that went past the recording, to the graph itself

    @property
    def recorded(self) -> bool:
        return self.name in RECORDING


# --------------------------------------------------------------------------------- what no recording can hold


def uncapturable(gm: fx.GraphModule) -> str:
    """An op whose work the host decides: a CUDA graph cannot hold it, and trying leaves the process unable to capture."""
    data = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"{node.target.name()} decides on the host what runs"
        if isinstance(node.target, torch._ops.OpOverload) and data & {*node.target.tags}:
            return f"{node.target} depends on data"
    return ""


def unrecordable(case: Case, batch: int = 0) -> str:
    """Inputs and outputs that AutoDeploy's recordings do not take. They copy tensor inputs into buffers of their own, cut
    every output along the batch dim, and return buffers of their own: made for token ids in and logits out."""
    specs = case.micrograph.inputs
    tensors = tensor_count(case)
    if not tensors:
        return "no input is a tensor"
    if any(isinstance(spec, Tensor) for spec in specs[tensors:]):
        return "a number comes before a tensor among the inputs, and only what comes after all tensors is taken as fixed"
    inputs = case.inputs(0)
    module = case.module()
    plain = oracle.run(module, inputs, module)
    if plain.error is not None:
        return ""  # not for us to say: the graph is going to
    written = oracle.mutated(plain, case.inputs(0))
    if written:
        return f"input {written[0]} is written, and a recording works on a copy of it"
    for index, (output, shares) in enumerate(zip(plain.outputs, plain.shares, strict=True)):
        if not isinstance(output, torch.Tensor):
            return f"output {index} is no tensor ({type(output).__name__})"
        if output.dim() <= batch:
            return f"output {index} has no dim {batch} to cut to the batch's size"
        if shares.startswith(("input", "state")):
            return f"output {index} shares memory with {shares}, and a recording returns a copy"
        if any(step == 0 and size > 1 for step, size in zip(plain.strides[index] or (), output.shape, strict=True)):
            return f"output {index} has many elements in one place, and cannot be written into"
    return ""


def tensor_count(case: Case) -> int:
    """How many of the inputs, from the first on, are tensors."""
    count = 0
    for spec in case.micrograph.inputs:
        if not isinstance(spec, Tensor):
            break
        count += 1
    return count


# ------------------------------------------------------------------------------------------------- compiling


def compile_backend(loaded: Loaded, gm: fx.GraphModule, case: Case, name: str = "", module: nn.Module | None = None) -> Chosen:
    """The program of one compile backend: torch-simple where there is no GPU, CUDA graphs where there is one.

    module   whose buffers the warm-up calls may change: they are put back"""
    name = name or ("torch-cudagraph" if case.target.name == "cuda" else "torch-simple")
    why = (uncapturable(gm) or unrecordable(case)) if name in RECORDING else ""
    if not why:
        try:
            return made(loaded, gm, case, name, module)
        except Exception as error:
            if name not in RECORDING:
                raise
            why = f"{name} does not capture it: {first_line(error)}"
    chosen = made(loaded, gm, case, "torch-simple", module)
    chosen.fallback = why
    return chosen


def made(loaded: Loaded, gm: fx.GraphModule, case: Case, name: str, module: nn.Module | None) -> Chosen:
    with loaded.active(), nogpu.answers(), torch.no_grad(), listening(), oracle.state_kept(module):
        registry = loaded.module("compile.compiler").CompileBackendRegistry
        program = registry.get(name)(gm, **settings(name, case)).compile()
    if name not in RECORDING:
        return Chosen(name, program, cache_observation(name, program))
    plain: list[int] = []
    gm.register_forward_pre_hook(lambda *_: plain.append(1))

    def replayed(*inputs: Any) -> Any:
        with torch.inference_mode():  # as AutoDeploy calls it: the buffers were made in this mode
            return program(*inputs)

    return Chosen(name, replayed, cache_observation(name, program), plain=plain)


def settings(name: str, case: Case) -> dict[str, Any]:
    """CUDA graphs are captured per batch size: the first dim of the first input, where it has a name."""
    if name not in RECORDING:
        return {}
    dim = batch_dim(case)
    size = {**case.micrograph.dims, **case.sizes}.get(dim, 1) if dim else 1

    def arguments(batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return case.inputs(**({dim: batch} if dim else {})), {}

    return {
        "get_args_kwargs_for_compile": arguments,
        "cuda_graph_batch_sizes": [size],
        "num_batched_inputs": tensor_count(case),
        "piecewise_enabled": False,
    }


def batch_dim(case: Case) -> str:
    """The first dim of the first input, if the graph serves it at any size: AutoDeploy asks for a smaller batch as a probe."""
    contract = case.micrograph.contract.capture
    first = case.micrograph.inputs[0] if case.micrograph.inputs else None
    names = first.names() if isinstance(first, Tensor) else ()
    return names[0] if names and names[0] in {*contract.recompiles, *contract.dynamic} else ""


def cache_observation(name: str, program: Any) -> Observation:
    """What can be seen of a cache: how many graphs were captured, and for which shapes."""
    captured = getattr(program, "cudagraphs", None)
    if captured is None:
        return Observation.says(Verdict.UNAVAILABLE, NO_CACHE.format(name=name))
    return Observation(facts={"captured": len(captured), "shapes": [list(shape) for shape in captured]})
