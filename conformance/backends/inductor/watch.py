"""One compile, watched: the graphs on their way, what was fused, the kernels, and the structured trace.

The structured trace is what `TORCH_TRACE` writes and tlparse reads. The rest comes from subscribing to the seam. A watcher does not
change what is compiled: caches and keys are those of a bare `torch.compile`. On request (`rung`) the graph of an earlier stage runs in
place of the program.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance.backends.inductor.cost import Cost, cost_of
from conformance.backends.inductor.seam import TRACE_LOG, seam
from conformance.graph_runner import runnable
from conformance.graphs import copied, count_ops
from conformance.seam import Subscription
from conformance.stage import Stage

Proceed = Callable[..., Any]
NO_CALL = {"AssertScalar", "DynamicScalar", "MultiOutput"}  # IR nodes that are parts of another call, or no call at all
BREAK = "dynamo_graph_break_reason"
TRACE_EVENTS = {"dynamo_output_graph", "dynamo_cpp_guards_str", "aot_forward_graph_fw_metadata", BREAK}
SOURCES = {"inductor_output_code", "inductor_aot_wrapper_code", "inductor_aot_kernel_code"}


@dataclass
class GraphRecord:
    """One graph handed to Inductor: forward, backward or inference."""

    role: str = "inference"
    decomposed: fx.GraphModule | None = (
        None  # as AOTAutograd made it; in training, after the joint passes and the partitioner
    )
    postgrad: fx.GraphModule | None = None
    groups: list[list[str]] = field(default_factory=list)  # IR nodes of each scheduled group
    externs: list[str] = field(default_factory=list)
    cost: Cost | None = None
    kernels: dict[str, str] = field(default_factory=dict)  # name → source, as handed to the wrapper
    generated: Callable[..., Any] | None = None
    program: Any = None  # the CompiledFxGraph

    def at(self, rung: str) -> Callable[..., Any] | None:
        """An earlier form of the program that takes and returns the same flat values."""
        if rung == "generated":
            return self._generated()
        graph = getattr(self, rung, None)
        return None if graph is None else runnable(graph)

    def _generated(self) -> Callable[..., Any] | None:
        """The generated source on its own, without what Inductor's runtime puts around it."""
        source = getattr(self.program, "source_code", None)
        constants = getattr(self.program, "constants", None)
        if not source or constants:
            return None
        if self.generated is None:
            scope: dict[str, Any] = {"__name__": "conformance_generated", "__file__": "generated.py"}
            exec(compile(source, "generated.py", "exec"), scope)
            call = scope["call"]
            self.generated = lambda *inputs: call(list(inputs))
        return self.generated


@dataclass
class Watch:
    """What was seen of one compile."""

    captured: list[fx.GraphModule] = field(default_factory=list)
    aot: list[fx.GraphModule] = field(default_factory=list)  # before the joint passes: what decomposition left
    joint: list[fx.GraphModule] = field(default_factory=list)  # after them
    parameters: tuple[Any, ...] = ()  # values of the first inputs of `aot[-1]`: freezing makes constants of them
    graphs: list[GraphRecord] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)  # name, metadata, payload
    compiles: int = 0
    hooks: Subscription = field(default_factory=Subscription)
    rung: str = ""  # what runs in place of the program: captured, decomposed, postgrad, generated; "" is the program
    at_rest: bool = False  # what is compiled now is a probe's, and is not kept
    raw: list[Any] = field(
        default_factory=list
    )  # what an earlier form of the program gave, before the runtime's wrappers
    left: list[Any] = field(default_factory=list)  # the inputs that it was given, as it left them
    depth: dict[str, int] = field(default_factory=dict)  # how deep each function that calls itself is in itself

    def payloads(self, name: str) -> list[str]:
        return [payload for event, _, payload in self.events if event == name]

    @property
    def emptied(self) -> bool:
        """Was there something to compute, of which decomposition or the joint passes left nothing?"""
        return bool(count_ops(self.captured)) and bool(self.joint) and not count_ops(self.joint)

    def silent_hooks(self, stage: Stage) -> list[str]:
        """Hooks that serve the stage and were not called although a program was compiled: torch goes another way by now. A program of
        which nothing is left goes no further."""
        if self.emptied:
            return []
        compiled = any(name in SOURCES for name, _, _ in self.events) or any(
            self.hooks.calls[key] for key in seam.names
        )
        served = [key for key, name in seam.names.items() if name.hook and stage in name.stages]
        return [key for key in served if compiled and not self.hooks.calls[key]]

    # ----------------------------------------------------------------------------------------- subscribers

    def unless_at_rest(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def around(proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
            return proceed(*args, **kwargs) if self.at_rest else hook(proceed, *args, **kwargs)

        return around

    def compile_fx(self, proceed: Proceed, model: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Dynamo's graph; and a switch, so that the captured graph can run in place of what was compiled from it."""
        captured = _copied(model)
        if captured is None or self.depth.get("compile_fx"):  # with settings of its own, compile_fx calls itself
            return proceed(model, example_inputs, *args, **kwargs)
        self.compiles += 1
        self.captured.append(captured)
        marks = (len(self.captured) - 1, len(self.aot), len(self.graphs))
        try:
            with self._inside("compile_fx"):
                compiled = proceed(model, example_inputs, *args, **kwargs)
        except Exception as error:
            if is_restart(error):  # this attempt does not count
                self._forget(marks)
            raise
        if not inspect.isfunction(compiled) and not inspect.ismethod(compiled):
            return compiled  # ahead of time: files, not a function

        def call(*inputs: Any) -> Any:
            return captured(*inputs) if self.rung == "captured" else compiled(*inputs)

        return call

    def _forget(self, marks: tuple[int, int, int]) -> None:
        """Everything that was seen since."""
        self.compiles -= 1
        seen: tuple[list[Any], ...] = (self.captured, self.aot, self.graphs)
        for found, length in zip(seen, marks, strict=True):
            del found[length:]

    @contextmanager
    def _inside(self, key: str) -> Iterator[bool]:
        """Yields whether this is the outermost call of a function that calls itself for subgraphs."""
        self.depth[key] = self.depth.get(key, 0) + 1
        try:
            yield self.depth[key] == 1
        finally:
            self.depth[key] -= 1

    def joint_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._inside("joint_passes") as outermost:
            if outermost:
                self.aot.append(_copied(gm))
                self.parameters = _parameters()
            result = proceed(gm, *args, **kwargs)
            if outermost:
                self.joint.append(_copied(result if result is not None else gm))
            return result

    def post_grad_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._inside("post_grad_passes") as outermost:
            result = proceed(gm, *args, **kwargs)
            if outermost and self.graphs:
                self.graphs[-1].postgrad = _copied(gm)
            return result

    def codegen_and_compile(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        """Called once for each graph that Inductor compiles."""
        role = "backward" if kwargs.get("is_backward") else "inference" if kwargs.get("is_inference") else "forward"
        # In inference the graph before the joint passes has the same calling convention; a joint graph has not.
        aot = self.aot[-1] if role == "inference" and self.aot else None
        record = GraphRecord(role, decomposed=_frozen(aot, gm, self.parameters) if aot else _copied(gm))
        self.graphs.append(record)
        record.program = proceed(gm, *args, **kwargs)
        return record.program

    def schedule(self, proceed: Proceed, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        """The scheduler's nodes when it turns to code: what was fused with what."""
        if self.graphs:
            record = self.graphs[-1]
            for node in scheduler.nodes:
                names = [part.get_name() for part in node.get_nodes()]
                if getattr(node, "is_extern", bool)():
                    record.externs += [name for name in [_extern_name(node)] if name not in NO_CALL]
                elif not getattr(node, "is_nop", bool)() and type(node).__name__ != "NopKernelSchedulerNode":
                    record.groups.append(names)
            result = proceed(scheduler, *args, **kwargs)
            record.cost = cost_of(scheduler)
            return result
        return proceed(scheduler, *args, **kwargs)

    def define_kernel(
        self, proceed: Proceed, wrapper: Any, kernel_name: str, kernel_body: str, *args: Any, **kwargs: Any
    ) -> Any:
        if self.graphs:
            self.graphs[-1].kernels[kernel_name] = kernel_body
        return proceed(wrapper, kernel_name, kernel_body, *args, **kwargs)

    def run_program(self, proceed: Proceed, program: Any, inputs: Any) -> Any:
        """The program, or in its place an earlier graph of the same calling convention."""
        if self.rung:
            record = next((g for g in self.graphs if g.program is program), None)
            if record is not None and (earlier := record.at(self.rung)) is not None:
                arguments = list(inputs)
                if isinstance(inputs, list):
                    inputs.clear()
                result = earlier(*arguments)
                if record.role != "backward":
                    self.raw, self.left = list(result), arguments
                return result
        return proceed(program, inputs)


HOOKS = (
    "compile_fx",
    "joint_passes",
    "post_grad_passes",
    "codegen_and_compile",
    "schedule",
    "define_kernel",
    "run_program",
)


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Watch every compile and every call inside. A name that is gone is not watched: the backend says so of the stages it serves."""
    around = {key: watch.unless_at_rest(getattr(watch, key)) for key in HOOKS if seam.has(key)}
    with seam.subscribe(watch.hooks, **around), poisoned(), listening(TraceHandler(watch)):
        yield watch


# ------------------------------------------------------------------------------------------ structured trace


class TraceHandler(logging.Handler):
    """Keeps the events of the structured trace that stages are made of."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.DEBUG)
        self.watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if not metadata:
            return
        name = next(iter(metadata))
        if name in ("artifact", "graph_dump"):
            name = metadata[name].get("name", "")
        if name in TRACE_EVENTS or name in SOURCES or "cache" in name:
            payload = getattr(record, "payload", None)
            self.watch.events.append((name, metadata, payload if isinstance(payload, str) else ""))


@contextmanager
def listening(handler: logging.Handler) -> Iterator[None]:
    """The structured trace goes to this handler, too."""
    log = logging.getLogger(TRACE_LOG)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


LOGGED: dict[str, Callable[..., Any]] = {
    "key_in_words": lambda *_: [],
    "logged_settings": lambda *_: None,
    "logged_dynamo_settings": lambda *_: None,
}


@contextmanager
def nobody_listening() -> Iterator[None]:
    """For probes whose graphs and guards nobody reads: torch does not write the structured trace then, nor what else it works out for its
    logs, a seventh of what they cost."""
    log = logging.getLogger(TRACE_LOG)
    handlers = [handler for handler in log.handlers if isinstance(handler, TraceHandler)]
    for handler in handlers:
        log.removeHandler(handler)
    try:
        with seam.subscribe(**{key: instead for key, instead in LOGGED.items() if seam.has(key)}):
            yield
    finally:
        for handler in handlers:
            log.addHandler(handler)


# ------------------------------------------------------------------------------------------------- buffers


@contextmanager
def poisoned() -> Iterator[None]:
    """Fill every new buffer of a generated program with a value that no program computes. It would otherwise hold whatever was in
    memory before, often what eager has just computed, and a kernel that leaves elements out would look right."""
    with ExitStack() as stack:
        if seam.has("empty_strided_cpu"):
            stack.enter_context(seam.subscribe(empty_strided_cpu=_poisoned_buffer))
        yield


def _poisoned_buffer(proceed: Proceed, *args: Any, **kwargs: Any) -> torch.Tensor:
    made = proceed(*args, **kwargs)
    wide = made.dtype.is_floating_point or made.dtype.is_complex
    with suppress(NotImplementedError, RuntimeError):  # a dtype that cannot be filled
        made.fill_(-12345.678 if wide else made.dtype is torch.bool or 113)  # no NaN: programs do compute that
    return made


# ------------------------------------------------------------------------------------------------- helpers


def is_restart(error: BaseException) -> bool:
    """Does Dynamo capture the frame anew?"""
    return "Restart" in type(error).__name__


def _copied(gm: Any) -> Any:
    return copied(gm) if isinstance(gm, fx.GraphModule) else None


def _parameters() -> tuple[Any, ...]:
    context = seam.tracing_context() if seam.has("tracing_context") else None
    return tuple(getattr(context, "params_flat_unwrap_subclasses", None) or ())


def _frozen(aot: fx.GraphModule, gm: fx.GraphModule, parameters: tuple[Any, ...]) -> fx.GraphModule:
    """The graph before the joint passes, which takes what the program takes: what freezing made constants are constants of it, too."""
    taken = {node.name for node in gm.graph.nodes if node.op == "placeholder"}
    given = [node for node in aot.graph.nodes if node.op == "placeholder"]
    frozen = [(node, value) for node, value in zip(given, parameters, strict=False) if node.name not in taken]
    if len(given) == len(taken) or len(given) - len(frozen) != len(taken):
        return aot
    for node, value in frozen:
        name = f"frozen_{node.name}"
        setattr(aot, name, value)
        with aot.graph.inserting_before(node):
            node.replace_all_uses_with(aot.graph.get_attr(name))
        aot.graph.erase_node(node)
    aot.recompile()
    return aot


def _extern_name(node: Any) -> str:
    ir = getattr(node, "node", None)
    return str(getattr(ir, "python_kernel_name", None) or getattr(ir, "op_overload", None) or type(ir).__name__)
