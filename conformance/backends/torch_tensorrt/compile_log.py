"""What one run of `torch_tensorrt.dynamo.compile` showed, kept as plain data and as copies of its graphs."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance.backends.torch_tensorrt.converted import Unlike
from conformance.backends.torch_tensorrt.seam import seam
from conformance.seam import Subscription
from conformance.stage import Stage
from conformance.torch_seam import OpOverload

PARTITIONERS = ("fast_partition", "global_partition")


@dataclass
class PassRun:
    """One lowering pass: the graph before and after."""

    name: str
    before: str
    after: str
    dropped_writes: list[str] = field(default_factory=list)  # inputs and buffers whose final `copy_` this pass removed
    disturbed: list[str] = field(default_factory=list)  # the user's buffers that it wrote to
    graph: fx.GraphModule | None = None  # a copy of what the pass gave, where it changed something

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass
class Layer:
    name: str
    type: str
    op: str  # of the FX node it was made for
    node: str


@dataclass
class Engine:
    """One TensorRT engine: the network that was defined, and what the builder made of it."""

    name: str
    graph: fx.GraphModule
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    user_outputs: int = 0
    layers: list[Layer] = field(default_factory=list)
    layers_per_op: Counter[str] = field(default_factory=Counter)
    aliased_io: dict[str, tuple[str, str]] = field(default_factory=dict)  # output → (input, kind)
    writes: dict[str, str] = field(default_factory=dict)  # input binding → the node whose value an aliased layer writes
    unlike: dict[str, Unlike] = field(default_factory=dict)  # node → in what its converter's result differs from it
    built: list[str] = field(default_factory=list)  # the builder's own list of the layers it made
    plan: bytes = b""
    specs: Any = None  # input specs and settings it was built with, for the cache stage
    settings: Any = None


@dataclass
class CompileLog:
    """The graphs, passes, partitions and engines of one compile, as far as it came."""

    reached: Stage = Stage.CAPTURE
    error: BaseException | None = None
    exported: Any = None  # ExportedProgram
    decomposed: fx.GraphModule | None = None
    lifted: fx.GraphModule | None = None
    lifted_buffers: dict[str, str] = field(default_factory=dict)  # placeholder → buffer
    buffer_writes: dict[str, str] = field(default_factory=dict)  # buffer → node whose value is copied into it
    predicted: list[str] = field(default_factory=list)  # placeholders that an engine is expected to write in place
    copied_back: list[str] = field(default_factory=list)  # buffers whose new value is only a hidden output
    pre_passes: list[PassRun] = field(default_factory=list)
    passes: list[PassRun] = field(default_factory=list)
    lowered: fx.GraphModule | None = None
    partitioned: fx.GraphModule | None = None
    partitioner: str = ""
    partitioners: dict[str, Any] = field(default_factory=dict)  # name → number of engines, or why it failed
    unsupported: dict[str, int] = field(default_factory=dict)
    engines: list[Engine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: dict[Stage, float] = field(default_factory=dict)
    result: Any = None  # what the user gets
    hooks: Subscription = field(default_factory=Subscription)  # how often each step was called

    def silent(self, stage: Stage) -> list[str]:
        """Steps that serve the stage and were not called although a later one was, or the compile ended: Torch-TensorRT
        goes another way by now."""
        hooks = [key for key, name in seam.names.items() if name.hook]
        has_engines = bool(self.engines) or (self.partitioned is not None and engines_in(self.partitioned) > 0)
        needed = () if self.result is None else hooks if has_engines else hooks[:3]
        found = []
        for index, key in enumerate(hooks):
            passed = key in needed or any(self.hooks.calls[later] for later in hooks[index + 1 :])
            if stage in seam.names[key].stages and passed and not self.hooks.calls[key]:
                found.append(key)
        return found

    def writes(self) -> dict[str, str]:
        """Input → node whose value an aliased layer of some engine writes into it."""
        return {name: node for engine in self.engines for name, node in engine.writes.items()}


def snapshot(gm: fx.GraphModule) -> fx.GraphModule:
    """A copy that later passes, which work in place, cannot touch."""
    return copy.deepcopy(gm)


def shown(gm: fx.GraphModule) -> str:
    """The graph as text, with shapes where they are known."""
    lines = []
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        shape = f"  # {str(value.dtype)[6:]}{list(value.shape)}" if isinstance(value, torch.Tensor) else ""
        lines.append(f"{node.format_node()}{shape}")
    return "\n".join(lines)


def op_name(target: Any) -> str:
    """`aten.add`, `getitem`, `_run_on_acc_0`: without the overload, as the suite writes ops."""
    if isinstance(target, OpOverload):
        return str(target.overloadpacket)
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def ops(gm: fx.GraphModule) -> Counter[str]:
    return Counter(op_name(node.target) for node in gm.graph.nodes if node.op == "call_function")


def final_writes(gm: fx.GraphModule) -> dict[str, str]:
    """Input or buffer → node whose value a `copy_` writes into it: how an exported program says that it mutates."""
    copies = (torch.ops.aten.copy_.default,)
    found = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target in copies and isinstance(node.args[0], fx.Node):
            destination = node.args[0]
            if destination.op in ("placeholder", "get_attr"):
                found[str(destination.target)] = node.args[1].name if isinstance(node.args[1], fx.Node) else ""
    return found


def engines_in(gm: fx.GraphModule) -> int:
    """The fast partitioner calls its engines `_run_on_acc_*`; the global one leaves only engines as submodules."""
    calls = [str(node.target) for node in gm.graph.nodes if node.op == "call_module" and node.target != "_guards_fn"]
    return sum("_run_on_gpu" not in name for name in calls)
