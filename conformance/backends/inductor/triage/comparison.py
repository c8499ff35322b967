"""Inside the stage at fault: which capture, decomposition, pass, lowering or kernel.

Everything here runs graphs that the trace holds, on the inputs of the failing call; only the last step compiles anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from conformance import graphs, oracle
from conformance.backends.inductor.triage import loop_ir_interpreter
from conformance.stage import Stage
from conformance.triage.culprit import Culprit


@dataclass
class Evidence:
    """What was kept of the failing compile beyond what its trace holds."""

    passes: list[tuple[str, fx.GraphModule]] = field(default_factory=list)  # the graph after each pass, in order
    patterns: list[str] = field(default_factory=list)  # those that matched since the last pass
    lowered: list[Any] = field(default_factory=list)  # GraphLowering objects
    traced: list[fx.GraphModule] = field(
        default_factory=list
    )  # what AOTAutograd is given: the captured graph after pre-grad passes
    inputs: dict[int, list[Any]] = field(default_factory=dict)  # by number of the graph: the flat inputs of the program


# ------------------------------------------------------------------------------------------- evidence


@contextmanager
def kept(evidence: Evidence) -> Iterator[Evidence]:
    """Keep the graph after every pass, and the lowered form of every graph, of the compiles inside."""
    from torch._inductor import compile_fx, pattern_matcher
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    with ExitStack() as stack:

        def hook(owner: Any, name: str, make: Callable[[Callable[..., Any], Evidence], Callable[..., Any]]) -> None:
            if hasattr(owner, name):
                stack.enter_context(patch.object(owner, name, make(getattr(owner, name), evidence)))

        for name in ("apply_gm_pass", "apply_graph_pass"):
            hook(GraphTransformObserver, name, _after_pass)
        for entry in ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry"):
            hook(getattr(pattern_matcher, entry, None), "apply", _after_match)
        for name in ("_recursive_joint_graph_passes", "_recursive_post_grad_passes"):
            hook(compile_fx, name, _at_the_end(name.removeprefix("_recursive_")))
        hook(compile_fx, "_recursive_pre_grad_passes", _pre_grad)
        original = Scheduler.codegen

        def codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
            evidence.lowered.append(V.graph)
            return original(self, *args, **kwargs)

        stack.enter_context(patch.object(Scheduler, "codegen", codegen))
        yield evidence


def _after_pass(original: Callable[..., Any], evidence: Evidence) -> Callable[..., Any]:
    def apply(self: Any, function: Any) -> Any:
        result = original(self, function)
        _keep(evidence, f"{self.subsystem or ''}:{self.passname}".lstrip(":"), self.gm)
        return result

    return apply


def _after_match(original: Callable[..., Any], evidence: Evidence) -> Callable[..., Any]:
    """A set of patterns is one pass: which of them matched?"""

    def apply(self: Any, match: Any, graph: fx.Graph, node: Any) -> Any:
        result = original(self, match, graph, node)
        name = getattr(self, "pattern_name", None) or getattr(getattr(self, "handler", None), "__name__", "")
        evidence.patterns += [name] if name and name not in evidence.patterns else []
        return result

    return apply


def _at_the_end(name: str) -> Callable[[Callable[..., Any], Evidence], Callable[..., Any]]:
    """What passes do beside the observed ones shows at their end."""

    def make(original: Callable[..., Any], evidence: Evidence) -> Callable[..., Any]:
        def run(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            result = original(gm, *args, **kwargs)
            _keep(evidence, name, result if isinstance(result, fx.GraphModule) else gm)
            return result

        return run

    return make


def _keep(evidence: Evidence, name: str, gm: fx.GraphModule) -> None:
    matched, evidence.patterns = evidence.patterns, []
    evidence.passes.append(
        (f"{name} ({', '.join(matched)})" if matched else name, fx.GraphModule(gm, _copied(gm.graph)))
    )


def _pre_grad(original: Callable[..., Any], evidence: Evidence) -> Callable[..., Any]:
    def run(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        result = original(gm, *args, **kwargs)
        evidence.traced.append(fx.GraphModule(result, _copied(result.graph)))
        evidence.passes, evidence.patterns = [], []  # those before the graph was traced
        return result

    return run


def _copied(graph: fx.Graph) -> fx.Graph:
    import copy

    return copy.deepcopy(graph)


# -------------------------------------------------------------------------------------------- capture


class _Calls(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        if name not in ("__get__", "__set__", "size", "dim", "stride", "__len__"):
            self.names.append(name.strip("_"))
        return func(*args, **(kwargs or {}))


def of_capture(module: Any, inputs: tuple[Any, ...], captured: list[fx.GraphModule]) -> Culprit | None:
    """The first call of the program that the captured graph does not have in its place."""
    with _Calls() as calls:
        module(*inputs)
    have = [
        (n.target if isinstance(n.target, str) else getattr(n.target, "__name__", str(n.target))).strip("_")
        for gm in captured
        for n in gm.graph.nodes
        if n.op in ("call_function", "call_method")
    ]
    lost = [name for name in dict.fromkeys(calls.names) if calls.names.count(name) > have.count(name)]
    extra = [name for name in dict.fromkeys(have) if have.count(name) > calls.names.count(name)]
    if not lost and not extra:
        return Culprit(
            "capture", "outputs", "every call was captured; what the graph returns, or in which order, is wrong"
        )
    shown = f"the program calls {', '.join(lost[:4]) or 'nothing more'}; the graph has {', '.join(extra[:4]) or 'nothing'} instead"
    return Culprit("capture", (lost or extra)[0], shown, lost or extra)


# -------------------------------------------------------------------------------------- decomposition


class _Against(TorchDispatchMode):
    """Every ATen op that the program calls, held against its decomposition on the same values."""

    def __init__(self, table: dict[Any, Any]) -> None:
        super().__init__()
        self.table = table
        self.wrong: dict[Any, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        pure = _functional(func)
        decomposition = self.table.get(pure)
        if decomposition is not None and pure not in self.wrong:
            self._compare(pure, decomposition, args, kwargs)
        return func(*args, **kwargs)

    def _compare(self, func: Any, decomposition: Any, args: Any, kwargs: Any) -> None:
        random = torch.Tag.nondeterministic_seeded in func.tags
        state = torch.get_rng_state()
        try:
            want = func(*args, **kwargs)
            torch.set_rng_state(state)
            got = decomposition(*args, **kwargs)
        except Exception as error:
            if "NotImplemented" not in str(error):
                self.wrong[func] = f"it raises {type(error).__name__}"
            return
        finally:
            torch.set_rng_state(state)
        if got is NotImplemented or random:
            return
        for g, w in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=False):
            if isinstance(w, torch.Tensor) and isinstance(g, torch.Tensor) and w.numel():
                if g.dtype != w.dtype or g.shape != w.shape:
                    self.wrong[func] = f"it gives {g.dtype} {tuple(g.shape)}, the op gives {w.dtype} {tuple(w.shape)}"
                    return
                for difference in oracle.value_differences("", g.detach(), w.detach()):
                    self.wrong[func] = difference.detail
                    return


def _functional(op: Any) -> Any:
    """What functionalization makes of an op that writes: `lerp_` is decomposed as `lerp`. None where there is no such op."""
    if not op._schema.is_mutable:
        return op
    packet = getattr(torch.ops.aten, op._schema.name.removeprefix("aten::").rstrip("_"), None)
    found = getattr(packet, op._overloadname, None)
    return None if found is None or found._schema.is_mutable else found


def wrong_decompositions(module: Any, inputs: tuple[Any, ...], table: dict[Any, Any]) -> Culprit | None:
    """The first op of the program whose decomposition does not compute what the op computes."""
    wants_grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    with torch.set_grad_enabled(wants_grad), _Against(dict(table)) as mode:
        oracle.run(module, inputs, module)
    if not mode.wrong:
        return None
    op, why = next(iter(mode.wrong.items()))
    return Culprit("decomposition", str(op), why, [str(op)])


def of_decomposition(module: Any, inputs: tuple[Any, ...], watch: Any) -> Culprit | None:
    from torch._inductor.decomposition import select_decomp_table

    if wrong := wrong_decompositions(module, inputs, select_decomp_table()):
        return wrong
    left = sorted({name for gm in watch.aot for name in _decomposable(gm)})
    if left:
        return Culprit("decomposition", left[0], "it is missing: the op was left whole", left)
    eager, traced = _ops_of_eager(module, inputs), _all_ops(watch.aot)
    written = [
        name for name in eager if name.split(".")[1].endswith("_") and name.split(".")[1] not in ("copy_", "set_")
    ]
    if written and not any(graphs.written_inputs(gm) for gm in watch.aot):
        return Culprit(
            "functionalization",
            written[0],
            "the program writes into its input, the traced graph does not write it back",
            written,
        )
    drawn = [name for name in dict.fromkeys(eager) if _draws(name)]
    if drawn:
        return Culprit(
            "tracing",
            drawn[0],
            "it draws random numbers; what is drawn, or what becomes of it, is not what eager makes",
            drawn,
        )
    return Culprit(
        "tracing", "aot_autograd", f"the decompositions are right; the traced graph calls {', '.join(list(traced)[:6])}"
    )


def _decomposable(gm: Any) -> list[str]:
    from conformance.backends.inductor.decompositions import decomposable

    return decomposable(gm)


class _Ops(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def _ops_of_eager(module: Any, inputs: tuple[Any, ...]) -> list[str]:
    with _Ops() as mode, torch.no_grad():
        oracle.run(module, oracle.clone_inputs(inputs), module)
    return mode.names


def _draws(name: str) -> bool:
    try:
        packet, overload = name.split(".")[1:3]
        return torch.Tag.nondeterministic_seeded in getattr(getattr(torch.ops.aten, packet), overload).tags
    except (AttributeError, ValueError):
        return False


def _all_ops(found: list[fx.GraphModule]) -> dict[str, int]:
    total: dict[str, int] = {}
    for gm in found:
        for name, count in graphs.ops(gm).items():
            total[name] = total.get(name, 0) + count
    return total


def of_pre_grad(evidence: Evidence, captured: fx.GraphModule, inputs: tuple[Any, ...]) -> Culprit | None:
    """Did a pass change the captured graph before it was traced?"""
    want = _run(captured, list(inputs))
    for gm in evidence.traced:
        if _placeholders(gm) == _placeholders(captured) and (why := _changed(gm, captured, list(inputs), want)):
            return Culprit(
                "pass", "pre_grad_passes", f"before the graph is traced, {why}", sorted(set(_ops_gone(captured, gm)))
            )
    return None


# --------------------------------------------------------------------------------------------- passes


def of_passes(evidence: Evidence, before: fx.GraphModule, inputs: list[Any]) -> Culprit | None:
    """The first pass after which the graph computes something else, writes less, or has lost its metadata."""
    want = _run(before, inputs)
    previous, last = before, "(what runs before the first observed pass)"
    for name, gm in evidence.passes:
        if _placeholders(gm) != _placeholders(before):
            continue
        why = _changed(gm, previous, inputs, want)
        if why:
            between = "" if last.startswith("(") and name == evidence.passes[0][0] else f", after {last}"
            return Culprit("pass", name, f"{why}{between}", sorted(set(_ops_gone(previous, gm))))
        previous, last = gm, name
    return None


def _placeholders(gm: fx.GraphModule) -> int:
    return sum(node.op == "placeholder" for node in gm.graph.nodes)


def _changed(gm: fx.GraphModule, previous: fx.GraphModule, inputs: list[Any], want: Any) -> str:
    if len(graphs.without_metadata(gm)) > len(graphs.without_metadata(previous)):
        return f"{len(graphs.without_metadata(gm))} ops no longer say their shape and dtype"
    if graphs.written_inputs(gm) < graphs.written_inputs(previous):
        return "a write into an input is gone"
    got = _run(gm, inputs)
    if isinstance(got, Exception) or isinstance(want, Exception):
        return (
            f"the graph no longer runs: {type(got).__name__}"
            if isinstance(got, Exception) and not isinstance(want, Exception)
            else ""
        )
    for index, (g, w) in enumerate(zip(got, want, strict=False)):
        if isinstance(w, torch.Tensor) and isinstance(g, torch.Tensor):
            for difference in oracle.value_differences(f"output {index}", g, w):
                return f"the graph computes something else: {difference}"
    return ""


def _run(gm: fx.GraphModule, inputs: list[Any]) -> Any:
    """Outputs, and the inputs as the graph left them."""
    values = list(oracle.clone_inputs(tuple(inputs)))
    torch.manual_seed(oracle.SEED)
    try:
        with torch.no_grad():
            result = fx.Interpreter(gm).run(*values, enable_io_processing=False)
    except Exception as error:
        return error
    return [*pytree.tree_leaves(result), *(v for v in values if isinstance(v, torch.Tensor))]


def _ops_gone(before: fx.GraphModule, after: fx.GraphModule) -> list[str]:
    old, new = graphs.ops(before), graphs.ops(after)
    return [name for name in {*old, *new} if old[name] != new[name]]


# ------------------------------------------------------------------------------ lowering, fusion, code


def of_code(evidence: Evidence, record: Any, inputs: list[Any], stage: Stage) -> Culprit | None:
    """Is the lowered IR right? Then which kernel does not compute its IR?"""
    lowered = next((g for g in evidence.lowered if len(g.graph_input_names) == len(inputs)), None)
    if lowered is None or record.postgrad is None:
        return None
    values = node_values(record.postgrad, inputs)
    run = loop_ir_interpreter.Run(lowered, inputs, values)
    again = _written_again(lowered)
    for operation in lowered.operations:
        own = run.step(operation) and operation.get_name() not in again
        wrong = _differs_from_graph(run, operation, values) if own else None
        if wrong is not None:
            ops = _origin_ops(operation)
            return Culprit(
                "lowering", wrong, f"the loops lowered from it compute something else ({_shown(operation)})", ops
            )
    kernel = _first_wrong_kernel(record, inputs, run, lowered, again)
    if kernel is not None and kernel[0] == LIBRARY:
        operation = next(o for o in lowered.operations if kernel[1] in {b.get_name() for b in o.get_outputs()})
        ops = _origin_ops(operation)
        return Culprit(
            "lowering",
            ", ".join(ops) or kernel[1],
            "the call of the library that it becomes computes something else",
            ops,
        )
    if kernel is None:
        what = "the order of kernels, the buffers they share, or what is returned"
        return Culprit("wrapper", "call()", f"every kernel computes what was lowered; {what} is wrong")
    name, buffer = kernel
    members = [o for o in lowered.operations if o.get_name() in _made_by(record, name, buffer)]
    ops = sorted({op for o in members for op in _origin_ops(o)})
    what = "fusion group" if stage is Stage.FUSION else "kernel"
    nodes = len({node for o in members for node in getattr(o, "origins", None) or ()})
    return Culprit(what, name, f"{buffer} is not what its loops compute; ops in it: {', '.join(ops)}", ops, nodes)


def node_values(gm: fx.GraphModule, inputs: list[Any]) -> dict[str, Any]:
    """The value of every node of a graph."""
    found: dict[str, Any] = {}

    class Keep(fx.Interpreter):
        def run_node(self, node: fx.Node) -> Any:
            value = super().run_node(node)
            found[node.name] = value.clone() if isinstance(value, torch.Tensor) else value
            return value

    torch.manual_seed(oracle.SEED)
    with torch.no_grad():
        Keep(gm).run(*oracle.clone_inputs(tuple(inputs)), enable_io_processing=False)
    return found


LIBRARY = "a call of the library"


def _written_again(lowered: Any) -> set[str]:
    """Buffers that a later operation writes into: until then they hold something else than the op that they stand for."""
    from torch._inductor import ir as loops

    layouts = [buffer.get_output_spec() for o in lowered.operations for buffer in o.get_outputs()]
    return {
        layout.get_buffer().get_name() for layout in layouts if isinstance(layout, loops.MutationLayoutSHOULDREMOVE)
    }


def _differs_from_graph(run: loop_ir_interpreter.Run, operation: Any, values: dict[str, Any]) -> str | None:
    origin = getattr(operation, "origin_node", None)
    want = values.get(origin.name) if origin is not None else None
    if not isinstance(want, torch.Tensor):
        return None
    got = run.tensor(operation.get_name(), operation)
    if got.numel() != want.numel():
        return None
    got = got.reshape(want.shape) if got.shape != want.shape else got
    wrong = any(True for _ in oracle.value_differences("", got.to(want.dtype), want))
    wrong |= getattr(operation, "dtype", want.dtype) != want.dtype
    return graphs.op_name(origin.target) if wrong else None  # type: ignore[union-attr]


def _origin_ops(operation: Any) -> list[str]:
    origins = getattr(operation, "origins", None) or ()
    return sorted({graphs.op_name(node.target) for node in origins if node.op == "call_function"})


def _shown(operation: Any) -> str:
    return f"{operation.get_name()}, from {', '.join(_origin_ops(operation)) or 'nothing known'}"


def _made_by(record: Any, kernel: str, buffer: str) -> set[str]:
    """The IR nodes of the group that makes a buffer."""
    for group in record.groups:
        if any(name.replace("op", "buf") == buffer for name in group):
            return {*group, *(name.replace("op", "buf") for name in group)}
    return {buffer}


def _first_wrong_kernel(
    record: Any, inputs: list[Any], run: loop_ir_interpreter.Run, lowered: Any, again: set[str]
) -> tuple[str, str] | None:
    """Run the generated program with every kernel watched: the first that leaves in a buffer something else than its IR, or
    that is handed such a buffer by a call of the library."""
    source = getattr(record.program, "source_code", None)
    if not source:
        return None
    scope: dict[str, Any] = {"__name__": "conformance_watched", "__file__": "watched.py"}
    exec(compile(source, "watched.py", "exec"), scope)
    buffers = {o.get_name(): o for o in lowered.operations}
    for o in lowered.operations:
        for b in o.get_outputs():
            buffers[b.get_name()] = b
    found: list[tuple[str, str]] = []
    given: dict[str, str] = {}  # buffer → the kernel that was given it
    library = _made_by_the_library(lowered)

    def look(name: str, names: list[str], args: tuple[Any, ...]) -> None:
        for argument, value in zip(names, args, strict=False):
            if not found and argument in buffers and isinstance(value, torch.Tensor) and argument not in run.aliases:
                want = run.tensor(argument, buffers[argument])
                if want.shape == value.shape and any(
                    True for _ in oracle.value_differences("", value, want.to(value.dtype))
                ):
                    found.append((name, argument))

    def watched(name: str, function: Any, names: list[str]) -> Any:
        last = [
            n if calls[n] == name else "" for n in names
        ]  # a buffer that is written again is looked at when all have written

        def call(*args: Any) -> Any:
            came = [n if n in buffers and n not in reused else reused.get(n, "") for n in names]
            look(LIBRARY, [n if n in library and n not in given and n not in again else "" for n in came], args)
            result = function(*args)
            given.update(dict.fromkeys(names, name))
            look(name, [n if n not in again else m for n, m in zip(names, last, strict=True)], args)
            return result

        return call

    reused = dict(re.findall(r"^\s+(\w+) = (\w+); del \2  # reuse", source, re.MULTILINE))  # in the memory of another
    calls: dict[str, str] = {}  # buffer → the last kernel that takes it
    kernels: dict[str, list[str]] = {}
    for match in re.finditer(r"^\s+(\w+)\((.*)\)\s*$", source, re.MULTILINE):
        if match.group(1) in record.kernels:
            kernels[match.group(1)] = [part.strip() for part in match.group(2).split(",")]
            calls.update(dict.fromkeys(kernels[match.group(1)], match.group(1)))
    for name, names in kernels.items():
        if callable(scope.get(name)):
            scope[name] = watched(name, scope[name], names)
    with torch.no_grad():
        result = scope["call"](list(oracle.clone_inputs(tuple(inputs))))
    look(LIBRARY, [n if n in library and n not in again else "" for n in lowered.get_output_names()], tuple(result))
    return found[0] if found else _forgotten(record, given, lowered)


def _made_by_the_library(lowered: Any) -> set[str]:
    from torch._inductor import ir as loops

    calls = [o for o in lowered.operations if isinstance(o, loops.ExternKernel)]
    return {buffer.get_name() for o in calls for buffer in o.get_outputs()}


def _forgotten(record: Any, given: dict[str, str], lowered: Any) -> tuple[str, str] | None:
    """An output of a fused group that its kernel does not write."""
    for name in lowered.get_output_names():
        members = _made_by(record, "", name)
        kernel = next((given[other] for other in sorted(members) if other in given), None)
        if name not in given and kernel is not None:
            return kernel, name
    return None
