"""From the log of a compile to what each stage showed: facts in the suite's words, texts for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from conformance import graphs
from conformance.backends.torch_tensorrt.capture import Captured
from conformance.backends.torch_tensorrt.compile_log import CompileLog, Engine, shown
from conformance.backends.torch_tensorrt.seam import outside, seam
from conformance.checks.measured import CACHE_WRITE, COMPILE_WRITES, CONVERTED, DIM_SPECIALIZED
from conformance.trace import Observation, digest
from conformance.verdict import Finding, Kind, Verdict


def capture(log: CompileLog, captured: Captured, several: bool) -> Observation:
    """`several`: the contract promises graph breaks or more than one graph."""
    gm = captured.program.graph_module
    facts: dict[str, Any] = {
        "ops": _counted(gm),
        "inputs": len(captured.program.graph_signature.user_inputs),
        "dynamic": captured.dynamic,
    }
    if not several:  # export gives one graph or none: a contract that asks for more is not export's to keep
        facts |= {"graphs": int(bool(facts["ops"])), "breaks": 0}
    if captured.specialized:
        facts["specialized"] = sorted(captured.specialized)
    findings = [
        Finding(Kind.EXTRA_RECOMPILE, DIM_SPECIALIZED, f"the dim {dim} did not stay symbolic: {why}")
        for dim, why in captured.specialized.items()
    ]
    return Observation(facts, {"graph": graphs.text(gm)}, findings=findings)


def decomposition(log: CompileLog) -> Observation:
    gm = log.decomposed
    assert gm is not None
    facts = {
        "aten_ops": _counted(gm),
        "composite": _undecomposed(log),
        "writes": graphs.writes(gm),
        "written_inputs": graphs.written_inputs(gm),
        "without_metadata": _without_metadata(gm),
        "written_buffers": sorted(name for name in log.buffer_writes if _is_state(gm, name)),
        "lifted_buffers": dict(sorted(log.lifted_buffers.items())),
        "written_in_place": sorted(log.predicted),
        "copied_back": sorted(log.copied_back),
        "passes_changed": [run.name for run in log.pre_passes if run.changed],
    }
    texts = {"graph": graphs.text(gm)}
    if log.lifted_buffers and log.lifted is not None:
        texts["graph with lifted buffers"] = shown(log.lifted)
    return Observation(facts, texts)


def postgrad(log: CompileLog) -> Observation:
    gm, before = log.lowered, log.decomposed
    assert gm is not None and before is not None
    aliased = {name for name in log.writes() if name not in log.lifted_buffers}
    facts: dict[str, Any] = {
        "ops": _counted(gm),
        "passes": len(log.passes),
        "passes_changed": [run.name for run in log.passes if run.changed],
        "without_metadata": _without_metadata(gm),
    }
    if log.error is None:  # without engines nobody knows which writes they would have taken over
        facts |= {
            "written_inputs_before": graphs.written_inputs(before),
            "written_inputs": graphs.written_inputs(gm) + len(aliased & set(_inputs_written(before))),
            "writes_left_to_engines": sorted(log.writes()),
        }
    dropped = {run.name: run.dropped_writes for run in log.passes if run.dropped_writes}
    if dropped:
        facts["writes_dropped_by"] = dropped
    texts: dict[str, str] = {}
    for index, run in enumerate(log.passes):
        if run.changed:
            texts[f"{index:02d} {run.name} before"] = run.before
            texts[f"{index:02d} {run.name} after"] = run.after
    texts["graph"] = shown(gm)
    findings = [
        Finding(
            Kind.LOST_MUTATION,
            COMPILE_WRITES,
            f"compiling changes the user's buffer {name}: the pass {run.name} ran a write to it",
        )
        for run in log.passes
        for name in run.disturbed
    ]
    return Observation(facts, texts, findings=findings)


def fusion(log: CompileLog) -> Observation:
    left = dict(sorted(_left_in_torch(log)))
    converted = sum((Counter(_counted(engine.graph)) for engine in log.engines), Counter())
    facts = {
        "engines": len(log.engines),
        "ops_in_engines": dict(sorted(converted.items())),
        "ops_in_torch": left,
        "partitioner": log.partitioner,
        "partitioners": dict(sorted(log.partitioners.items())),
    }
    if not log.engines and not left:
        return Observation(facts | {"nothing_to_do": True}, {"graph": shown(_final(log))})
    if not log.engines:
        why = next((line for line in log.warnings if "supported operations" in line), "") or "no op has a converter"
        reason = f"every op stayed in PyTorch: {_listed(left) or why}"
        return Observation(facts, {"graph": shown(_final(log))}, Verdict.FALLBACK, reason)
    texts = {"partitions": shown(_final(log))}
    texts |= {f"engine {engine.name}": shown(engine.graph) for engine in log.engines}
    return Observation(facts, texts)


def codegen(log: CompileLog, capability: str) -> Observation:
    layers = [layer for engine in log.engines for layer in engine.layers]
    built = [line for engine in log.engines for line in engine.built]
    per_op = sum((engine.layers_per_op for engine in log.engines), Counter())
    facts = {
        "layers": len(layers),
        "layer_types": dict(sorted(Counter(layer.type for layer in layers).items())),
        "layers_per_op": dict(sorted(per_op.items())),
        "built_layers": len(built),
        "fused_layers": sum(_is_fused(line) for line in built),
        "built_digest": digest("\n".join(_name(line) for line in built)),
        "aliased_io": {
            f"{e.name}.{out}": f"{source} ({kind})" for e in log.engines for out, (source, kind) in e.aliased_io.items()
        },
        "promoted_outputs": [f"{e.name}.{name}" for e in log.engines for name in e.outputs[e.user_outputs :]],
        "converted_otherwise": {f"{e.name}: {node}": one.said for e in log.engines for node, one in e.unlike.items()},
        "compute_capability": capability,
        "plan_bytes": sum(len(engine.plan) for engine in log.engines),
    }
    if log.engines:
        facts["programs"] = sum(bool(engine.plan) for engine in log.engines)
    texts = {f"network {engine.name}": _network(engine) for engine in log.engines}
    texts |= {f"built layers of {engine.name}": "\n".join(engine.built) for engine in log.engines}
    return Observation(facts, texts, findings=[*_miswritten(log), *_misconverted(log)])


# --------------------------------------------------------------------------------------------- details


def _counted(gm: fx.GraphModule) -> dict[str, int]:
    counts = graphs.ops(gm)
    return {name: counts[name] for name in sorted(counts) if name != "_guards_fn"}


def _is_state(gm: fx.GraphModule, name: str) -> bool:
    return name in dict(gm.named_buffers()) or name in dict(gm.named_parameters())


def _inputs_written(gm: fx.GraphModule) -> list[str]:
    copies = [node for node in gm.graph.nodes if node.target is torch.ops.aten.copy_.default]
    return [str(n.args[0].target) for n in copies if isinstance(n.args[0], fx.Node) and n.args[0].op == "placeholder"]


def _undecomposed(log: CompileLog) -> list[str]:
    """Composite ops that are still there when lowering is done, and that no converter takes whole."""
    assert log.decomposed is not None
    left = graphs.composite(log.lowered or log.decomposed, outside.has_kernel)
    return [
        op
        for op in graphs.composite(log.decomposed, outside.has_kernel)
        if op in left and not _convertible(log.decomposed, op)
    ]


def _convertible(gm: fx.GraphModule, op: str) -> bool:
    """Torch-TensorRT keeps composite ops on purpose where it has a converter for the whole."""
    return any(str(n.target) == op and _has_converter(n) for graph in graphs.graphs_of(gm) for n in graph.nodes)


def _without_metadata(gm: fx.GraphModule) -> int:
    """`ExportedProgram.module()` appends its final `copy_`s bare: they compute nothing."""
    bare = set(graphs.without_metadata(gm))
    return sum(node.name in bare and node.target is not torch.ops.aten.copy_.default for node in gm.graph.nodes)


def _has_converter(node: fx.Node) -> bool:
    return node.target in seam.converters.unique_targets()


def _final(log: CompileLog) -> fx.GraphModule:
    gm = log.partitioned or log.lowered
    assert gm is not None
    return gm


def _left_in_torch(log: CompileLog) -> Iterator[tuple[str, str]]:
    for graph in _torch_graphs(log):
        for node in graph.nodes:
            if node.op != "call_function" or graphs.op_name(node.target) == "operator.getitem":
                continue
            name = graphs.op_name(node.target)
            if not _has_converter(node):
                yield name, "no converter"
            elif node not in seam.converters:
                yield name, "its converter refuses these arguments or dynamic shapes"
            else:
                yield name, "too few ops around it for an engine"


def _torch_graphs(log: CompileLog) -> list[fx.Graph]:
    gm, engines = _final(log), {engine.name for engine in log.engines}
    parts = [child for name, child in gm.named_children() if isinstance(child, fx.GraphModule) and name not in engines]
    return [gm.graph, *(part.graph for part in parts if not type(part).__name__.startswith("_guards"))]


def _listed(left: dict[str, str]) -> str:
    return ", ".join(f"{op} ({why})" for op, why in left.items())


def _is_fused(line: str) -> bool:
    name = _name(line)
    return "..." in name or " + " in name or "ForeignNode" in name


def _name(line: str) -> str:
    """`Layer(Myelin): {ForeignNode[a...b]}, Tactic: …` → `{ForeignNode[a...b]}`."""
    return line.partition(": ")[2].partition(", Tactic")[0]


def _network(engine: Engine) -> str:
    lines = [f"inputs: {', '.join(engine.inputs)}", f"outputs: {', '.join(engine.outputs)}"]
    lines += [f"aliased: {out} is {source} ({kind})" for out, (source, kind) in engine.aliased_io.items()]
    lines += [f"{layer.type:24} {layer.op:32} {layer.name}" for layer in engine.layers]
    return "\n".join(lines)


def _misconverted(log: CompileLog) -> Iterator[Finding]:
    """What comes after the first is mostly its consequence."""
    for engine in log.engines:
        wrong = [f"{node}: the layers give {one.said}" for node, one in engine.unlike.items() if one.wrong]
        yield from (Finding(Kind.BAD_CODE, CONVERTED, detail) for detail in wrong[:1])


def _miswritten(log: CompileLog) -> Iterator[Finding]:
    """A cache-update layer writes consecutive positions, whatever the op says."""
    for engine in log.engines:
        nodes = {node.name: node for node in engine.graph.graph.nodes}
        for name in engine.writes.values():
            node = nodes.get(name)
            if node is None or node.target is not torch.ops.aten.slice_scatter.default:
                continue
            step = node.args[5] if len(node.args) > 5 else node.kwargs.get("step", 1)
            if step not in (None, 1):
                detail = f"{name} writes every {step}th position, and became a layer that writes consecutive ones"
                yield Finding(Kind.BAD_CODE, CACHE_WRITE, detail)
