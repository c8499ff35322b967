"""The program as of the end of a stage, called as the user calls the module.

From lowering on, Torch-TensorRT takes writes to inputs out of the graph and leaves them to layers whose output is
aliased to the input. A program run in PyTorch has no such layers, so what they write is written here, and nothing else
is: a write that no layer stands for is lost, as it is in the engine. As of code generation an engine also gives what an
engine gives: contiguous tensors of its own, or the aliased input itself, as many as it has names for."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import fx, nn

from conformance.backends.base import Compiled
from conformance.backends.torch_tensorrt.compile_log import Engine
from conformance.stage import Stage
from conformance.torch_seam import buffers_of, nesting_of, pytree
from conformance.trace import Observation
from conformance.verdict import Verdict

VIEW_AS_COMPLEX = torch.ops.aten.view_as_complex.default


class Program(Compiled):
    """A compile as of an earlier stage: it has a module, whose buffers count, and only runs.

    state: the module whose buffers the call reads and writes. writes: input or buffer placeholder → node whose value
    goes there. engines: submodule → input of the engine → node whose value goes there, or the engine itself, to do as
    it does. buffers: placeholder → buffer that is passed for it. hidden: outputs at the end that the user does not
    see. complex_outputs: outputs that are pairs of real numbers here, and complex numbers for the user."""

    def __init__(
        self,
        graph: fx.GraphModule,
        state: nn.Module,
        *,
        writes: Mapping[str, str] | None = None,
        buffers: Mapping[str, str] | None = None,
        engines: Mapping[str, Mapping[str, str] | Engine] | None = None,
        hidden: int = 0,
        out_spec: Any = None,
        complex_outputs: Collection[int] = (),
    ) -> None:
        self.graph = graph
        self.module = state
        self.writes = dict(writes or {})
        self.buffers = dict(buffers or {})
        self.engines = dict(engines or {})
        self.hidden = hidden
        self.out_spec = out_spec
        self.complex_outputs = complex_outputs

    def __call__(self, *inputs: Any) -> Any:
        share_state(self.graph, self.module)
        tensors = dict(self.module.named_buffers())
        arguments = (*inputs, *(tensors[buffer] for buffer in self.buffers.values()))
        runner = _Runner(self.graph, self.engines, set(self.writes.values()))
        result = runner.run(*arguments)
        placeholders = [node for node in self.graph.graph.nodes if node.op == "placeholder"]
        flat = pytree.tree_leaves(inputs) + list(arguments[len(inputs) :])
        by_name = {str(node.target): value for node, value in zip(placeholders, flat, strict=False)}
        for name, node in self.writes.items():
            if node in runner.kept and isinstance(by_name.get(name), torch.Tensor):
                by_name[name].copy_(runner.kept[node])
        return self._shaped(result)

    def observe(self, stage: Stage) -> Observation:
        return Observation.says(Verdict.UNAVAILABLE, "the whole compile is observed, not its program as of a stage")

    def _shaped(self, result: Any) -> Any:
        if self.hidden and isinstance(result, (tuple, list)):
            result = tuple(result)[: len(result) - self.hidden]
        if self.complex_outputs:
            result = self._with_complex(result)
        if self.out_spec is not None and not has_structure(self.graph):
            flat = list(result) if isinstance(result, (tuple, list)) else [result]
            return pytree.tree_unflatten(flat, self.out_spec)
        return result

    def _with_complex(self, result: Any) -> Any:
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        for index in self.complex_outputs:
            if index < len(values) and not values[index].is_complex():
                values[index] = torch.view_as_complex(values[index])
        return tuple(values) if isinstance(result, (tuple, list)) else values[0]


class _Runner(fx.Interpreter):
    """Runs a graph and keeps the values of some nodes; engines' submodules write to their own inputs where a layer does
    so."""

    def __init__(self, gm: fx.GraphModule, engines: Mapping[str, Mapping[str, str] | Engine], keep: set[str]) -> None:
        super().__init__(gm)
        self.engines = engines
        self.keep = keep
        self.kept: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.name in self.keep:
            self.kept[n.name] = value
        return value

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        engine = self.engines.get(str(target))
        if not engine:
            return super().call_module(target, args, kwargs)
        writes = engine.writes if isinstance(engine, Engine) else engine
        submodule = self.fetch_attr(target)
        runner = _Runner(submodule, {}, set(writes.values()))
        result = runner.run(*args, **kwargs)
        placeholders = [str(node.target) for node in submodule.graph.nodes if node.op == "placeholder"]
        given = dict(zip(placeholders, args, strict=False))
        outputs = _outputs(engine, result, given) if isinstance(engine, Engine) else result
        for name, value in given.items():
            if writes.get(name) in runner.kept and isinstance(value, torch.Tensor):
                value.copy_(runner.kept[writes[name]])
        return outputs


def _outputs(engine: Engine, result: Any, given: Mapping[str, Any]) -> Any:
    """What `TorchTensorRTModule.forward` returns: aliased outputs at the end are taken for side effects and left out;
    two nodes that became one tensor of the network have one name."""
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    names = [name for name in engine.outputs if name in engine.aliased_io or _index(name) < len(values)]
    while len(names) > 1 and names[-1] in engine.aliased_io and not set(names) <= set(engine.aliased_io):
        names.pop()
    outputs = []
    for name in names:
        aliased = given.get(engine.aliased_io[name][0]) if name in engine.aliased_io else None
        outputs.append(_own(values[_index(name)]) if aliased is None else aliased)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _index(name: str) -> int:
    """The interpreter calls its outputs `output0`, `output1` … by their place."""
    return int(name.removeprefix("output"))


def _own(value: Any) -> Any:
    return value.clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def has_structure(gm: fx.GraphModule) -> bool:
    """Does the graph still know how the user's inputs and outputs are nested?"""
    return nesting_of(gm.graph) is not None


def out_spec(gm: Any) -> Any:
    """How the module nests what it returns; None where it returns its flat outputs."""
    if not isinstance(gm, fx.GraphModule) or not has_structure(gm):
        return None
    return nesting_of(gm.graph).out_spec


def complex_outputs(gm: Any) -> list[int]:
    """The outputs that the compiled module makes complex numbers of, after the last engine."""
    if not isinstance(gm, fx.GraphModule):
        return []
    outputs = next(node for node in gm.graph.nodes if node.op == "output").args[0]
    nodes = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return [index for index, node in enumerate(nodes) if getattr(node, "target", None) is VIEW_AS_COMPLEX]


def share_state(gm: nn.Module, state: nn.Module) -> None:
    """Let the graph read and write the same buffers as every other program of this compile."""
    for name, tensor in state.named_buffers():
        *path, leaf = name.split(".")
        try:
            owner = operator.attrgetter(".".join(path))(gm) if path else gm
        except AttributeError:
            continue
        if leaf in (buffers := buffers_of(owner)):
            buffers[leaf] = tensor


def state_of(module: nn.Module, result: Any) -> nn.Module:
    """The user's module with the buffers that the compiled module really reads and writes: it may have its own copies,
    under flattened names. A buffer that the compiler baked into an engine stays the user's own, and is never
    written."""
    own = dict(result.named_buffers()) if isinstance(result, nn.Module) else {}
    for name, _ in list(module.named_buffers()):
        for candidate in (name, "lifted_buf_" + name.replace(".", "_")):
            if candidate in own:
                *path, leaf = name.split(".")
                owner = operator.attrgetter(".".join(path))(module) if path else module
                buffers_of(owner)[leaf] = own[candidate]
                break
    return module
