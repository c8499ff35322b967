"""What a compile of Inductor leaves behind for triage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from conformance import graphs, oracle
from conformance.backends.base import Case
from conformance.backends.inductor.triage import code_culprit, graph_culprit
from conformance.backends.inductor.triage.evidence import Evidence, keeping
from conformance.stage import Stage
from conformance.triage.culprit import Culprit
from conformance.triage.graph_comparison import wrong_pass
from conformance.triage.open_examination import Held, side_by_side
from conformance.triage.trail import NUMERIC, Trail


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
