"""The lowering or kernel at fault: the loop IR is interpreted, and the generated program runs with every kernel watched."""

from __future__ import annotations

import re
from typing import Any

import torch

from conformance import graphs, oracle
from conformance.backends.inductor.seam import seam
from conformance.backends.inductor.triage import loop_ir_interpreter
from conformance.backends.inductor.triage.evidence import Evidence
from conformance.stage import Stage
from conformance.triage.culprit import Culprit
from conformance.triage.graph_comparison import node_values

LIBRARY = "a call of the library"


def of_code(evidence: Evidence, record: Any, inputs: list[Any], stage: Stage) -> Culprit | None:
    """Is the lowered IR right? Then which kernel does not compute its IR?"""
    lowered = next((g for g in evidence.lowered if len(g.graph_input_names) == len(inputs)), None)
    if lowered is None or record.postgrad is None:
        return None
    values = {node.name: value for node, value in node_values(record.postgrad, tuple(inputs), nested=False).items()}
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


def _written_again(lowered: Any) -> set[str]:
    """Buffers that a later operation writes into: until then they hold something else than the op that they stand for."""
    layouts = [buffer.get_output_spec() for o in lowered.operations for buffer in o.get_outputs()]
    return {
        layout.get_buffer().get_name() for layout in layouts if isinstance(layout, seam.ir.MutationLayoutSHOULDREMOVE)
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
    calls = [o for o in lowered.operations if isinstance(o, seam.ir.ExternKernel)]
    return {buffer.get_name() for o in calls for buffer in o.get_outputs()}


def _forgotten(record: Any, given: dict[str, str], lowered: Any) -> tuple[str, str] | None:
    """An output of a fused group that its kernel does not write."""
    for name in lowered.get_output_names():
        members = _made_by(record, "", name)
        kernel = next((given[other] for other in sorted(members) if other in given), None)
        if name not in given and kernel is not None:
            return kernel, name
    return None
