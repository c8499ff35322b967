"""From what was watched to what each stage showed: facts in the suite's words, texts for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from conformance import graphs
from conformance.trace import Observation
from conformance.verdict import Verdict
from conformance_openvino.seam import seam
from conformance_openvino.watch import Graph, Partition, Watch


@dataclass(frozen=True)
class Snapshot:
    """What the first call left behind. Later calls go on to compile, and to give up."""

    breaks: dict[str, int]
    graphs: list[Graph]
    partitions: list[Partition]

    @classmethod
    def of(cls, watch: Watch) -> Snapshot:
        breaks = dict(seam.counters["graph_break"]) if seam.has("counters") else {}
        return cls(breaks, list(watch.graphs), [replace(partition) for partition in taken(watch)])

    def forms(self, name: str) -> list[fx.GraphModule]:
        return [form for graph in self.graphs if (form := getattr(graph, name)) is not None]


def taken(watch: Watch) -> list[Partition]:
    """The partitions that OpenVINO took; one that was not called yet has no model."""
    parts = [child for graph in watch.graphs for child in graph.submodules().values()]
    return [watch.partitions.get(id(child), Partition(child)) for child in parts]


def capture(seen: Snapshot) -> Observation:
    facts = {
        "graphs": len(seen.graphs),
        "breaks": sum(seen.breaks.values()),
        "break_reasons": sorted(reason.splitlines()[0][:160] for reason in seen.breaks),
        "ops": graphs.count_ops(seen.forms("captured")),
    }
    return Observation(facts, _numbered("graph", seen.forms("captured")))


def decomposition(seen: Snapshot) -> Observation:
    """The ATen graph. It is not made functional: `in_place` ops are left to the partitioner, which leaves them to torch."""
    found = seen.forms("decomposed")
    if reasons := [graph.error for graph in seen.graphs if graph.error and graph.decomposed is None]:
        return Observation.says(Verdict.FALLBACK, f"OpenVINO gave up, and Inductor compiled the graph: {reasons[0]}")
    facts = {
        "ops": graphs.count_ops(found),
        "composite": sorted({name for gm in found for name in graphs.composite(gm, seam.has_kernel)}),
        "in_place": sorted({name for gm in found for name in graphs.writes(gm)}),
        "written_inputs": sum(graphs.written_inputs(gm) for gm in found),
        "without_metadata": sum(len(graphs.without_metadata(gm)) for gm in found),
    }
    return Observation(facts, _numbered("graph", found))


def postgrad(seen: Snapshot) -> Observation:
    """The ATen graph with its partitions. OpenVINO has no passes over ATen ops (it rewrites its own model, see `codegen`): the
    partitioner must leave every op as it was."""
    found = seen.forms("partitioned")
    parts = [*found, *(partition.gm for partition in seen.partitions)]
    counted = graphs.count_ops(found).items()  # with those of the submodules, which are partitions
    facts = {
        "ops": {name: count for name, count in counted if not name.startswith("fused_")},
        "without_metadata": sum(len(graphs.without_metadata(gm)) for gm in parts),
    }
    return Observation(facts, _numbered("graph", found))


def fusion(seen: Snapshot) -> Observation:
    """The partitions: what OpenVINO took, and what torch computes."""
    in_engines = Counter(graphs.count_ops([partition.gm for partition in seen.partitions]))
    in_torch = Counter(op for gm in seen.forms("partitioned") for op in _left_in_torch(gm))
    facts: dict[str, Any] = {
        "engines": len(seen.partitions),
        "ops_in_engines": dict(sorted(in_engines.items())),
        "ops_in_torch": dict(sorted(in_torch.items())),
    }
    texts = _numbered("partitions", seen.forms("partitioned"))
    if reasons := [graph.error for graph in seen.graphs if graph.error]:
        reason = f"OpenVINO gave up, and Inductor compiled the graph: {reasons[0]}"
        return Observation(facts, texts, Verdict.FALLBACK, reason)
    if not seen.partitions and in_torch:
        alone = " (a single op is no partition)" if sum(in_torch.values()) == 1 else ""
        return Observation(
            facts, texts, Verdict.FALLBACK, f"OpenVINO took no op{alone}: torch computes {', '.join(sorted(in_torch))}"
        )
    return Observation(facts, texts)


def codegen(seen: Snapshot) -> Observation:
    """OpenVINO's models: the ops that were converted, and the layers that the CPU plugin made of them."""
    made = [partition for partition in seen.partitions if partition.compiled is not None and not partition.error]
    layers = [layer for partition in made for layer in _layers(partition)]
    facts: dict[str, Any] = {
        "model_ops": dict(sorted(Counter(op.get_type_name() for p in made for op in p.model.get_ops()).items())),
        "layers": dict(sorted(Counter(layer["layerType"] for layer in layers).items())),
        "precisions": sorted({layer["runtimePrecision"] for layer in layers}),
    }
    texts = {f"model {index}": _model_text(partition) for index, partition in enumerate(made)}
    if given_up := [partition for partition in seen.partitions if partition.error]:
        reason = (
            f"OpenVINO took {len(seen.partitions)} partitions and left {len(given_up)} to torch: {given_up[0].error}"
        )
        return Observation(facts, texts, Verdict.FALLBACK, reason)
    if any(graphs.count_ops(seen.forms("captured"))):
        facts["programs"] = len(made)
    return Observation(facts, texts)


def runtime(seen: Snapshot) -> Observation:
    return Observation({"calls": "compiled" if seen.partitions else "nothing to compile"})


# ---------------------------------------------------------------------------------------------- details


def _numbered(name: str, forms: list[fx.GraphModule]) -> dict[str, str]:
    return {name if len(forms) == 1 else f"{name} {index}": graphs.text(form) for index, form in enumerate(forms)}


def _left_in_torch(gm: fx.GraphModule) -> Iterator[str]:
    for node in gm.graph.nodes:
        if node.op in ("call_function", "call_method") and graphs.op_name(node.target) != "operator.getitem":
            yield graphs.op_name(node.target)


def _layers(partition: Partition) -> list[dict[str, str]]:
    names = ("layerType", "runtimePrecision", "originalLayersNames")
    ops = partition.compiled.get_runtime_model().get_ordered_ops()
    return [{name: str(op.get_rt_info()[name].astype(str)) for name in names if name in op.get_rt_info()} for op in ops]


def _model_text(partition: Partition) -> str:
    converted = [f"{op.get_type_name():24} {op.get_friendly_name()}" for op in partition.model.get_ordered_ops()]
    layers = [
        f"{layer['layerType']:24} {layer['runtimePrecision']:8} of {layer['originalLayersNames']}"
        for layer in _layers(partition)
    ]
    return "\n".join(["converted from the graph:", *converted, "", "layers of the compiled model:", *layers])
