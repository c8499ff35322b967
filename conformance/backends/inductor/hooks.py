"""Where Inductor lets itself be watched: every private name of torch that this backend uses is in this file.

A compile is watched from three places: the structured trace (what `TORCH_TRACE` writes and tlparse reads), the graph
passes (their FX graphs, before and after, still executable), and the scheduler (what was fused). Nothing is changed: each
hook calls the function it wraps with the same arguments, so that caches and keys are those of a bare `torch.compile`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from torch import fx

from conformance.graphs import copied, graphs_of


class Moved(Exception):
    """A private name of torch that this suite relies on is not where it was."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch {torch.__version__} has no {name}: the suite does not know this version yet")


@dataclass
class GraphRecord:
    """One graph handed to Inductor: forward, backward or inference."""

    role: str = "inference"
    decomposed: fx.GraphModule | None = None  # as AOTAutograd made it; in training, after the joint passes and the partitioner
    postgrad: fx.GraphModule | None = None
    before_fusion: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)  # IR nodes per scheduled group
    externs: list[str] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)  # name → source, as handed to the wrapper
    generated: Callable[..., Any] | None = None
    program: Any = None  # the CompiledFxGraph

    def at(self, rung: str) -> Callable[..., Any] | None:
        """An earlier form of the program that takes and gives the same flat values."""
        return self._generated() if rung == "generated" else getattr(self, rung, None)

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
    """What the hooks saw of one compile."""

    captured: list[fx.GraphModule] = field(default_factory=list)
    pregrad: list[fx.GraphModule] = field(default_factory=list)
    aot: list[fx.GraphModule] = field(default_factory=list)  # before the joint passes: what decomposition left
    joint: list[fx.GraphModule] = field(default_factory=list)  # after them
    graphs: list[GraphRecord] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)  # name, metadata, payload
    compiles: int = 0
    rung: str = ""  # which graphs run in place of the program: captured, decomposed, postgrad, or "" for the program
    moved: list[str] = field(default_factory=list)
    alter: Callable[[fx.GraphModule], bool] | None = None  # changes what was captured, for the probes of the cache
    raw: list[Any] = field(default_factory=list)  # what an earlier form of the program gave, before the runtime's wrappers
    left: list[Any] = field(default_factory=list)  # the inputs that it was given, as it left them

    def marks(self) -> tuple[int, ...]:
        return (len(self.captured) - 1, len(self.pregrad), len(self.aot), len(self.graphs))

    def forget(self, marks: tuple[int, ...]) -> None:
        """Everything seen since."""
        self.compiles -= 1
        seen: tuple[list[Any], ...] = (self.captured, self.pregrad, self.aot, self.graphs)
        for found, length in zip(seen, marks, strict=True):
            del found[length:]

    def payloads(self, name: str) -> list[str]:
        return [payload for event, _, payload in self.events if event == name]


class TraceHandler(logging.Handler):
    """Keeps the events of the structured trace that stages are made of."""

    KEPT = {
        "dynamo_output_graph",
        "dynamo_cpp_guards_str",
        "dynamo_graph_break_reason",
        "aot_forward_graph_fw_metadata",
        "inductor_output_code",
        "inductor_aot_wrapper_code",
        "inductor_aot_kernel_code",
        "fx_graph_runnable",
    }

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
        if name in self.KEPT or "cache" in name or "graph_break" in name or "recompile" in name:
            payload = getattr(record, "payload", None)
            self.watch.events.append((name, metadata, payload if isinstance(payload, str) else ""))


def _attribute(path: str) -> tuple[Any, str]:
    """`torch._inductor.compile_fx:compile_fx` → (module or class, name)"""
    import importlib

    module_name, _, rest = path.partition(":")
    try:
        owner: Any = importlib.import_module(module_name)
        *parents, name = rest.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        getattr(owner, name)
    except (ImportError, AttributeError):
        raise Moved(path.replace(":", ".")) from None
    return owner, name


def _copied(gm: Any) -> Any:
    return copied(gm) if isinstance(gm, fx.GraphModule) else None


# Ops that Inductor gives to the library although torch could take them apart.
WHOLE = {"aten._scaled_dot_product_flash_attention_for_cpu.default", "aten.polar.default", "aten.cumsum.default"}


@cache
def _core_decompositions() -> frozenset[Any]:
    """The ops that torch takes apart for every compiler, less those that Inductor says it wants whole. Its own table is not
    asked: it is what is being looked at."""
    try:
        from torch._decomp import _core_aten_decompositions_post_autograd
        from torch._inductor.decomposition import decomps_to_exclude
    except ImportError:
        return frozenset()
    whole = {o for entry in decomps_to_exclude for o in _overloads(entry)}
    return frozenset(_core_aten_decompositions_post_autograd()) - whole


def _overloads(entry: Any) -> list[Any]:
    return [entry] if isinstance(entry, torch._ops.OpOverload) else [getattr(entry, name) for name in entry.overloads()]


def decomposable(gm: fx.GraphModule | None) -> list[str]:
    """Ops of the graph that should not be there any more: core ones, and those that Inductor could only give to the library."""
    from torch._decomp import decomposition_table
    from torch._inductor.lowering import fallbacks, lowerings

    def left(op: Any) -> bool:
        if op in _core_decompositions():
            return True
        random = torch.Tag.nondeterministic_seeded in op.tags  # drawn by eager's own ops, where draws must be equal
        return op in decomposition_table and (op not in lowerings or op in fallbacks) and str(op) not in WHOLE and not random

    targets = {n.target for graph in graphs_of(gm) for n in graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    return sorted(str(op) for op in targets if left(op))


def changed_constant(gm: fx.GraphModule) -> bool:
    """Change the first number that the graph computes with; False where there is none."""
    for node in gm.graph.nodes:
        if node.op in ("call_function", "call_method"):
            for index, value in enumerate(node.args):
                if type(value) is float and abs(value) < 1e30:
                    node.update_arg(index, value + 0.5)
                    gm.recompile()
                    return True
    return False


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Watch every compile and every call inside."""
    with ExitStack() as stack:
        for path, wrap in WRAPPERS.items():
            try:
                owner, name = _attribute(path)
            except Moved:
                if path in REQUIRED:
                    raise
                watch.moved.append(path)
                continue
            stack.enter_context(patch.object(owner, name, wrap(getattr(owner, name), watch)))
        stack.enter_context(listening(TraceHandler(watch)))
        yield watch


@contextmanager
def listening(handler: logging.Handler) -> Iterator[None]:
    """The structured trace goes to this handler, too."""
    log = logging.getLogger("torch.__trace")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


# ---------------------------------------------------------------------------------------- the wrappers


def _wrap_compile_fx(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """Dynamo's graph; and a switch, so that the captured graph can run in place of what was compiled from it."""

    inside = False  # with settings of its own, compile_fx calls itself

    def compile_fx(model_: Any, example_inputs_: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        captured = _copied(model_)
        if captured is None or inside:
            return original(model_, example_inputs_, *args, **kwargs)
        if watch.alter is not None:
            watch.alter(model_)
        watch.compiles += 1
        watch.captured.append(captured)
        marks = watch.marks()
        inside = True
        try:
            compiled = original(model_, example_inputs_, *args, **kwargs)
        except Exception as error:
            if "Restart" in type(error).__name__:  # Dynamo captures the frame anew: this attempt does not count
                watch.forget(marks)
            raise
        finally:
            inside = False
        if not inspect.isfunction(compiled) and not inspect.ismethod(compiled):
            return compiled  # ahead of time: files, not a function

        def call(*inputs: Any) -> Any:
            return captured(*inputs) if watch.rung == "captured" else compiled(*inputs)

        return call

    return compile_fx


def _wrap_pre_grad(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    return _outermost(original, after=lambda result, gm: watch.pregrad.append(_copied(result if result is not None else gm)))


def _wrap_joint(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def after(result: Any, gm: Any) -> None:
        watch.joint.append(_copied(result if result is not None else gm))

    return _outermost(original, before=lambda gm: watch.aot.append(_copied(gm)), after=after)


def _wrap_post_grad(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def after(_: Any, gm: Any) -> None:
        if watch.graphs:
            watch.graphs[-1].postgrad = _copied(gm)

    return _outermost(original, after=after)


def _outermost(
    original: Callable[..., Any],
    before: Callable[[Any], None] | None = None,
    after: Callable[[Any, Any], None] | None = None,
) -> Callable[..., Any]:
    """These passes call themselves for subgraphs; only the whole graph is of interest."""
    depth = 0

    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        if before and depth == 0:
            before(gm)
        depth += 1
        try:
            result = original(gm, *args, **kwargs)
        finally:
            depth -= 1
        if after and depth == 0:
            after(result, gm)
        return result

    return wrapped


def _wrap_codegen_and_compile(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """One call for each graph that Inductor compiles."""

    def fx_codegen_and_compile(gm: Any, *args: Any, **kwargs: Any) -> Any:
        role = "backward" if kwargs.get("is_backward") else "inference" if kwargs.get("is_inference") else "forward"
        # In inference the graph before the joint passes has the same calling convention; a joint graph has not.
        aot = watch.aot[-1] if role == "inference" and watch.aot else None
        record = GraphRecord(role, decomposed=aot or _copied(gm))
        watch.graphs.append(record)
        record.program = original(gm, *args, **kwargs)
        return record.program

    return fx_codegen_and_compile


def _wrap_schedule(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """The scheduler's nodes when it turns to code: what was fused with what."""

    def codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.graphs:
            record = watch.graphs[-1]
            for node in self.nodes:
                names = [part.get_name() for part in node.get_nodes()]
                if getattr(node, "is_extern", bool)():
                    record.externs += [name for name in [_extern_name(node)] if name not in NO_CALL]
                elif not getattr(node, "is_nop", bool)() and type(node).__name__ != "NopKernelSchedulerNode":
                    record.groups.append(names)
        return original(self, *args, **kwargs)

    return codegen


NO_CALL = {"MultiOutput", "DynamicScalar"}  # parts of another call, or none


def _extern_name(node: Any) -> str:
    ir = getattr(node, "node", None)
    return str(getattr(ir, "python_kernel_name", None) or getattr(ir, "op_overload", None) or type(ir).__name__)


def _wrap_fuse(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def fuse_nodes(self: Any, nodes: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.graphs and not watch.graphs[-1].before_fusion:
            watch.graphs[-1].before_fusion = [node.get_name() for node in nodes]
        return original(self, nodes, *args, **kwargs)

    return fuse_nodes


def _wrap_define_kernel(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def define_kernel(self: Any, kernel_name: str, kernel_body: str, *args: Any, **kwargs: Any) -> Any:
        if watch.graphs:
            watch.graphs[-1].kernels[kernel_name] = kernel_body
        return original(self, kernel_name, kernel_body, *args, **kwargs)

    return define_kernel


def _wrap_empty(original: Callable[..., Any], watch: Watch | None = None) -> Callable[..., Any]:
    """A new buffer holds whatever was there before: often what eager has just computed, so that a kernel which leaves
    elements out would look right. Fill it with what no program computes."""

    def empty_strided(*args: Any, **kwargs: Any) -> torch.Tensor:
        made = original(*args, **kwargs)
        wide = made.dtype.is_floating_point or made.dtype.is_complex
        with suppress(NotImplementedError, RuntimeError):  # a dtype that cannot be filled
            made.fill_(-12345.678 if wide else made.dtype is torch.bool or 113)  # no NaN: programs do compute that
        return made

    return empty_strided


EMPTY = "torch._C._dynamo.guards:_empty_strided_cpu"


@contextmanager
def poisoned() -> Iterator[None]:
    """For programs that are compiled unwatched."""
    try:
        owner, name = _attribute(EMPTY)
    except Moved:
        yield
        return
    with patch.object(owner, name, _wrap_empty(getattr(owner, name))):
        yield


def _wrap_call(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """The program, or in its place an earlier graph of the same calling convention."""

    def __call__(self: Any, inputs: Any) -> Any:
        if watch.rung:
            record = next((g for g in watch.graphs if g.program is self), None)
            if record is not None and (earlier := record.at(watch.rung)) is not None:
                arguments = list(inputs)
                if isinstance(inputs, list):
                    inputs.clear()
                result = earlier(*arguments)
                if record.role != "backward":
                    watch.raw, watch.left = list(result), arguments
                return result
        return original(self, inputs)

    return __call__


WRAPPERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "torch._inductor.compile_fx:compile_fx": _wrap_compile_fx,
    "torch._inductor.compile_fx:_recursive_pre_grad_passes": _wrap_pre_grad,
    "torch._inductor.compile_fx:_recursive_joint_graph_passes": _wrap_joint,
    "torch._inductor.compile_fx:_recursive_post_grad_passes": _wrap_post_grad,
    "torch._inductor.compile_fx:fx_codegen_and_compile": _wrap_codegen_and_compile,
    "torch._inductor.scheduler:Scheduler.codegen": _wrap_schedule,
    "torch._inductor.scheduler:Scheduler.fuse_nodes": _wrap_fuse,
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.define_kernel": _wrap_define_kernel,
    "torch._inductor.output_code:CompiledFxGraph.__call__": _wrap_call,
    EMPTY: _wrap_empty,
}
REQUIRED = {"torch._inductor.compile_fx:compile_fx", "torch._inductor.compile_fx:fx_codegen_and_compile"}
