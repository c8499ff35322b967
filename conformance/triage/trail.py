"""What a compile leaves behind for triage: the captured graph, what it was called with, the graphs around a stage, and the
culprit inside it. Each backend leaves something else; a backend without a trail is triaged as far as its stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx

from conformance import graphs, oracle
from conformance.backends.base import Case
from conformance.backends.inductor.triage import code_culprit, graph_culprit
from conformance.backends.inductor.triage.evidence import Evidence, keeping
from conformance.stage import STAGES, Stage
from conformance.torch_seam import pytree
from conformance.triage.culprit import Culprit
from conformance.triage.graph_comparison import wrong_decompositions, wrong_pass
from conformance.triage.open_examination import Held, side_by_side

NUMERIC = {
    "wrong_result",
    "numeric_drift",
    "lost_mutation",
    "wrong_metadata",
    "metadata_loss",
    "overfused",
    "undecomposed",
}


class Trail:
    """`compiled` is the failing compile, held open; or, where that went on to other things, once more with everything kept."""

    probe: Callable[..., Any] | None = None  # runs a graph through the compiler as cheaply as can be

    def __init__(self, backend: Any, case: Case, held: Held | None = None) -> None:
        self.backend, self.case = backend, case
        self.compiled = backend.compile(case) if held is None else held.compiled

    def close(self) -> None:
        self.compiled.close()

    def captured(self) -> list[fx.GraphModule]:
        raise NotImplementedError

    def inputs(self) -> tuple[Any, ...] | None:
        """What the captured graph is called with."""
        return tuple(pytree.tree_leaves(self.case.inputs(0)))

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        return None

    def texts(self, stage: Stage) -> tuple[str, str]:
        """The graph that entered the stage, and what left it."""
        return "", ""


# -------------------------------------------------------------------------------------------- Inductor


class InductorTrail(Trail):
    def __init__(self, backend: Any, case: Case, held: Held | None = None) -> None:
        self.evidence = Evidence() if held is None else held.evidence
        if held is None:
            with keeping(self.evidence):
                super().__init__(backend, case)
                oracle.run(self.compiled, case.inputs(0), self.compiled.module, calls=case.micrograph.steps)
        else:
            super().__init__(backend, case, held)
        if case.target.name == "cpu":
            self.probe = side_by_side
        self.watch = self.compiled.watch
        for number, record in enumerate(self.watch.graphs):
            if record.decomposed is not None:
                record.decomposed = _Recording(record.decomposed, self.evidence.inputs, number)
        oracle.run(self.compiled.at(Stage.DECOMPOSITION), case.inputs(0), self.compiled.module)
        for record in self.watch.graphs:
            if isinstance(record.decomposed, _Recording):
                record.decomposed = record.decomposed.gm
        self.watch.rung = ""

    def captured(self) -> list[fx.GraphModule]:
        return list(self.watch.captured)

    def inputs(self) -> tuple[Any, ...] | None:
        """Recorded while the captured rung runs."""
        kept: list[tuple[Any, ...]] = []
        captured = self.watch.captured[0]
        original = captured.forward

        def forward(*values: Any) -> Any:
            kept.append(
                tuple(
                    v if not isinstance(v, torch.Tensor) else _copied(v).requires_grad_(v.requires_grad) for v in values
                )
            )
            return original(*values)

        captured.forward = forward
        try:
            oracle.run(self.compiled.at(Stage.CAPTURE), self.case.inputs(0), self.compiled.module)
        finally:
            captured.forward = original
            self.watch.rung = ""
        if not kept:
            return None
        grads = any(isinstance(x, torch.Tensor) and x.requires_grad for x in self.case.inputs(0))
        return kept[0] if grads else tuple(v.detach() if isinstance(v, torch.Tensor) else v for v in kept[0])

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        module = self.case.module()
        if stage is Stage.DECOMPOSITION and kind in {*NUMERIC, "crash"}:
            return self._before_tracing() or graph_culprit.of_decomposition(module, self.case.inputs(0), self.watch)
        if kind not in NUMERIC:
            return None
        if stage is Stage.CAPTURE:
            return graph_culprit.of_capture(module, self.case.inputs(0), self.watch.captured)
        named = None
        for number, record in enumerate(self.watch.graphs):
            inputs = self.evidence.inputs.get(number)
            if inputs is None or record.decomposed is None:
                continue
            named = self._in_graph(stage, record, inputs)
            if named is not None and named.what != "wrapper":
                return named
        if stage is Stage.POSTGRAD and any(
            isinstance(x, torch.Tensor) and x.requires_grad for x in self.case.inputs(0)
        ):
            return Culprit(
                "pass",
                "joint_graph_passes",
                "no pass changes the forward or the backward graph: it is one on the joint graph",
            )
        if stage is Stage.POSTGRAD:
            return Culprit(
                "pass", "between the observed passes", "no single observed pass changes the graph on these inputs"
            )
        return named

    def _before_tracing(self) -> Culprit | None:
        inputs = self.inputs() if len(self.watch.captured) == 1 else None
        return None if inputs is None else graph_culprit.of_pre_grad(self.evidence, self.watch.captured[0], inputs)

    def _in_graph(self, stage: Stage, record: Any, inputs: list[Any]) -> Culprit | None:
        if stage is Stage.POSTGRAD:
            return wrong_pass(self.evidence.passes, record.decomposed, inputs)
        if stage in (Stage.FUSION, Stage.CODEGEN):
            return code_culprit.of_code(self.evidence, record, inputs, stage)
        why = "the generated program is right; what it is called with, or what becomes of its answer, is not"
        return Culprit("runtime", "what calls the program", why)

    def texts(self, stage: Stage) -> tuple[str, str]:
        captured = _each_once(graphs.text(g) for g in self.watch.captured)
        aot = _each_once(graphs.text(g) for g in self.watch.aot)
        after = _each_once(graphs.text(g.postgrad) for g in self.watch.graphs)
        source = _each_once(getattr(g.program, "source_code", "") or "" for g in self.watch.graphs)
        table = {Stage.CAPTURE: ("", captured), Stage.DECOMPOSITION: (captured, aot), Stage.POSTGRAD: (aot, after)}
        return table.get(stage, (after, source))


def _each_once(texts: Iterable[str]) -> str:
    """Compiling again, as the ladder does, gives the same text under another number."""
    found = {re.sub(r"# AOT ID.*", "", text): text for text in texts}
    return "\n".join(found.values())


class _Recording:
    """A graph that keeps what it is called with."""

    def __init__(self, gm: Any, inputs: dict[int, list[Any]], number: int) -> None:
        self.gm, self.inputs, self.number = gm, inputs, number

    def __call__(self, *values: Any) -> Any:
        self.inputs.setdefault(self.number, [_copied(v) if isinstance(v, torch.Tensor) else v for v in values])
        return self.gm(*values)


def _copied(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone(memory_format=torch.preserve_format)


def _flat(gm: fx.GraphModule) -> fx.GraphModule:
    """An exported graph that takes and returns plain tensors, without its checks of sizes."""
    for node in gm.graph.find_nodes(op="call_module", target="_guards_fn"):
        gm.graph.erase_node(node)
    gm.graph.set_codegen(fx.graph.CodeGen())
    gm.recompile()
    return gm


# -------------------------------------------------------------------------------------- Torch-TensorRT


class TensorRTTrail(Trail):
    """Everything up to the engines runs in PyTorch; inside an engine nothing does."""

    def __init__(self, backend: Any, case: Case, held: Held | None = None) -> None:
        super().__init__(backend, case, held)
        self.recording: Any = getattr(self.compiled, "recording", None)

    def captured(self) -> list[fx.GraphModule]:
        if self.recording is None or self.recording.exported is None:
            return []
        return [_flat(self.recording.exported.module())]

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        record = self.recording
        if record is None:
            return None
        if stage is Stage.DECOMPOSITION and kind in NUMERIC:
            from torch_tensorrt.dynamo.lowering import get_decompositions

            wrong = wrong_decompositions(self.case.module(), self.case.inputs(0), get_decompositions())
            return wrong or self._lifting()
        if stage is Stage.POSTGRAD:
            return self._pass()
        if stage is Stage.FUSION and record.partitioned is not None:
            left = ", ".join(record.unsupported) or "none is named"
            return Culprit(
                "partitioner",
                record.partitioner,
                f"ops that it leaves to PyTorch: {left}",
                [*map(str, record.unsupported)],
            )
        if stage is Stage.CODEGEN and record.engines:
            last = record.engines[-1]
            op = last.layers[-1].op if last.layers else "its first op"
            return Culprit("engine", last.name, f"{len(last.layers)} layers were made, the last of them for {op}", [op])
        return None

    def _lifting(self) -> Culprit | None:
        record: Any = self.recording
        if not record.lifted_buffers:
            return None
        lost = [name for name in record.lifted_buffers if name not in record.predicted]
        why = f"buffers that become inputs: {', '.join(record.lifted_buffers)}; not written in place: {', '.join(lost) or 'none'}"
        return Culprit("lifting", "lift_mutated_buffers", why)

    def _pass(self) -> Culprit | None:
        record = self.recording
        for run in record.passes:
            if run.dropped_writes or run.disturbed:
                why = (
                    f"it drops the write to {', '.join(run.dropped_writes)}"
                    if run.dropped_writes
                    else "it writes to the user's buffers"
                )
                return Culprit("pass", run.name, why, ["copy"])
        passes = [(run.name, run.graph) for run in record.passes if run.graph is not None]
        buffers = dict(self.case.module().named_buffers())
        inputs = [*pytree.tree_leaves(self.case.inputs(0)), *(buffers[name] for name in record.lifted_buffers.values())]
        return wrong_pass(passes, record.lifted if record.lifted_buffers else record.decomposed, inputs)

    def texts(self, stage: Stage) -> tuple[str, str]:
        record = self.recording
        exported = graphs.text(record.exported.graph_module) if record.exported is not None else ""
        chain = [exported, graphs.text(record.decomposed), graphs.text(record.lowered), graphs.text(record.partitioned)]
        place = min(stage.order, len(chain) - 1)
        return (chain[place - 1] if place else ""), chain[place]


# ------------------------------------------------------------------------------------------ AutoDeploy


class AutoDeployTrail(Trail):
    """Its stages are lists of transforms: they are applied once more, one at a time."""

    def captured(self) -> list[fx.GraphModule]:
        from conformance.backends.autodeploy import graph

        found = self.compiled._graphs.get(Stage.CAPTURE)
        return [] if found is None else [_flat(graph.copied(found))]

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        if stage not in (Stage.DECOMPOSITION, Stage.POSTGRAD, Stage.FUSION):
            return None
        return self._unmatched(stage) if kind == "match_loss" else self._transform(stage)

    def _unmatched(self, stage: Stage) -> Culprit | None:
        from conformance.backends.autodeploy import plan

        found = self.compiled.observe(stage).facts.get("matches", {})
        for word, promised in self.case.micrograph.contract.postgrad.matches.items():
            if word in found and found[word] != promised:
                return Culprit(
                    "transform",
                    ", ".join(plan.WORDS[word]),
                    f"{word} matched {found[word]} times, contract says {promised}",
                )
        return None

    def _transform(self, stage: Stage) -> Culprit | None:
        from conformance.backends.autodeploy import graph, plan

        before = self.compiled._graphs.get(STAGES[STAGES.index(stage) - 1])
        if before is None:
            return None
        passes, gm = self.compiled.passes, graph.copied(before)
        ref = oracle.reference(self.case.module(), self.case.inputs(0))
        for name, settings in plan.of_stage(plan.configured(passes.loaded, self.compiled.option), stage).items():
            gm, (result,) = passes.run(gm, {name: settings})
            ops = [*result.removed, *result.added]
            if result.state == "failed":
                return Culprit("transform", name, result.reason, ops)
            if result.lost_metadata or result.wrong_metadata:
                return Culprit("transform", name, "; ".join(result.lost_metadata + result.wrong_metadata)[:200], ops)
            if result.changed and (found := self._differs(passes, gm, ref)):
                return Culprit("transform", name, f"after it the graph computes something else: {found}", ops)
        return None

    def _differs(self, passes: Any, gm: fx.GraphModule, ref: Any) -> str:
        from conformance.backends.autodeploy import graph

        moved = passes.moved(graph.copied(gm), self.case.run_device)
        outcome = oracle.run(self.compiled._callable(moved), self.case.inputs(0), self.compiled.module)
        found = oracle.compare(outcome, ref, strides=False)
        return str(found[0]) if found else ""

    def texts(self, stage: Stage) -> tuple[str, str]:
        texts = self.compiled.observe(stage).texts
        return texts.get("before", ""), texts.get("after", "")


TRAILS: dict[str, type[Trail]] = {
    "inductor": InductorTrail,
    "torch_tensorrt": TensorRTTrail,
    "autodeploy": AutoDeployTrail,
}


def follow(backend: Any, case: Case, held: Held | None = None) -> Trail | None:
    found = TRAILS.get(backend.name)
    return None if found is None else found(backend, case, held)
