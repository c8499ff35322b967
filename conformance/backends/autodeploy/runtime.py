"""AutoDeploy's compile backends: what turns the last graph into something to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from conformance import oracle
from conformance.backends.autodeploy import fake_cuda
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.autodeploy.passes import listening
from conformance.backends.base import Case
from conformance.errors import first_line
from conformance.inputs import Tensor
from conformance.torch_seam import HigherOrderOperator, OpOverload
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
    """An op whose work the host decides: a CUDA graph cannot hold it, and trying leaves the process unable to
    capture."""
    data = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    for node in gm.graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            return f"{node.target.name()} decides on the host what runs"
        if isinstance(node.target, OpOverload) and data & {*node.target.tags}:
            return f"{node.target} depends on data"
    return ""


def unrecordable(case: Case, batch: int = 0) -> str:
    """Inputs and outputs that AutoDeploy's recordings do not take. They copy tensor inputs into buffers of their own,
    cut every output along the batch dim, and return buffers of their own: made for token ids in and logits out."""
    plain = eagerly(case)
    if plain.error is not None:
        return ""  # not for us to say: the graph is going to
    specs, written = case.micrograph.inputs, oracle.mutated(plain, case.inputs(0))
    batched = [i for i, spec in enumerate(specs) if isinstance(spec, Tensor) and i not in written]
    if not batched:
        return "no input is a tensor that is only read"
    if written and any(isinstance(spec, Tensor) and spec.shares is not None for spec in specs):
        return f"input {written[0]} is written and shares memory with another"
    for index in batched:
        if plain.inputs[f"input {index}"].dim() <= batch:
            return f"input {index} has no dim {batch} to cut to the batch's size"
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


def eagerly(case: Case) -> oracle.Outcome:
    module = case.module()
    return oracle.run(module, case.inputs(0), module)


# ------------------------------------------------------------------------------------------------- compiling


def compile_backend(
    loaded: Loaded, gm: fx.GraphModule, case: Case, name: str = "", module: nn.Module | None = None
) -> Chosen:
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
    recording = Recording(gm, case) if name in RECORDING else None
    with loaded.active(), fake_cuda.answers(), torch.no_grad(), listening(), oracle.state_kept(module):
        program = loaded.seam.compile_backends.get(name)(gm, **(recording.settings() if recording else {})).compile()
    if recording is None:
        return Chosen(name, program, cache_observation(name, program))
    plain: list[int] = []
    gm.register_forward_pre_hook(lambda *_: plain.append(1))
    return Chosen(name, lambda *inputs: recording.call(program, inputs), cache_observation(name, program), plain=plain)


class Recording:
    """How AutoDeploy wants to be called where it replays: by keyword; tensors that are read are copied into its
    buffers, all else must be the very same object at each call. An input that is written is such a resource, as its KV
    caches are: here it lives at one address, its values go in before a call and out after it."""

    def __init__(self, gm: fx.GraphModule, case: Case) -> None:
        self.case = case
        self.names = [node.target for node in gm.graph.nodes if node.op == "placeholder"]
        inputs = case.inputs(0)
        if len(self.names) != len(inputs):
            raise NotImplementedError(f"the graph takes {len(self.names)} inputs for {len(inputs)} given")
        self.written = oracle.mutated(eagerly(case), inputs)
        own = oracle.clone_inputs(inputs)
        self.resources = {self.names[i]: own[i] for i in self.written}

    def settings(self) -> dict[str, Any]:
        """CUDA graphs are captured per batch size: the first dim of the first tensor that is read, where it has a
        name."""
        specs = self.case.micrograph.inputs
        batched = [i for i, spec in enumerate(specs) if isinstance(spec, Tensor) and i not in self.written]
        dim = batch_dim(self.case, specs[batched[0]])
        size = {**self.case.micrograph.dims, **self.case.sizes}.get(dim, 1) if dim else 1

        def arguments(batch: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
            inputs = self.case.inputs(**({dim: batch} if dim else {}))
            return (), {**dict(zip(self.names, inputs, strict=True)), **self.resources}

        return {
            "get_args_kwargs_for_compile": arguments,
            "cuda_graph_batch_sizes": [size],
            "num_batched_inputs": len(batched),
            "resource_input_names": {self.names[i] for i in range(len(specs)) if i not in batched},
            "piecewise_enabled": False,
        }

    def call(self, program: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
        given = dict(zip(self.names, inputs, strict=True))
        fits = all(given[name].shape == own.shape for name, own in self.resources.items())
        with torch.inference_mode():  # as AutoDeploy calls it: the buffers were made in this mode
            if not fits:
                return program(**given)
            for name, own in self.resources.items():
                own.copy_(given[name])
            result = program(**{**given, **self.resources})
            for name, own in self.resources.items():
                given[name].copy_(own)
            return result


def batch_dim(case: Case, spec: Any) -> str:
    """The first dim of an input, if the graph serves it at any size: AutoDeploy asks for a smaller batch as a probe."""
    contract = case.micrograph.contract.capture
    names = spec.names()
    return names[0] if names and names[0] in {*contract.recompiles, *contract.dynamic} else ""


def cache_observation(name: str, program: Any) -> Observation:
    """What can be seen of a cache: how many graphs were captured, and for which shapes."""
    captured = getattr(program, "cudagraphs", None)
    if captured is None:
        return Observation.says(Verdict.UNAVAILABLE, NO_CACHE.format(name=name))
    return Observation(facts={"captured": len(captured), "shapes": [list(shape) for shape in captured]})
