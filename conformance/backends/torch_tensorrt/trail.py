"""What a compile of Torch-TensorRT leaves behind for triage."""

from __future__ import annotations

from typing import Any

from torch import fx

from conformance import graphs
from conformance.backends.base import Case
from conformance.stage import Stage
from conformance.torch_seam import pytree
from conformance.triage.culprit import Culprit
from conformance.triage.graph_comparison import wrong_decompositions, wrong_pass
from conformance.triage.open_examination import Held
from conformance.triage.trail import NUMERIC, Trail, flat


class TensorRTTrail(Trail):
    """Everything up to the engines runs in PyTorch; inside an engine nothing does."""

    def __init__(self, backend: Any, case: Case, held: Held | None = None) -> None:
        super().__init__(backend, case, held)
        self.recording: Any = getattr(self.compiled, "recording", None)

    def captured(self) -> list[fx.GraphModule]:
        if self.recording is None or self.recording.exported is None:
            return []
        return [flat(self.recording.exported.module())]

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
