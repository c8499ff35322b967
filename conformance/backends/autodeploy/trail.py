"""What a compile of AutoDeploy leaves behind for triage."""

from __future__ import annotations

from typing import Any

from torch import fx

from conformance import oracle
from conformance.backends.autodeploy import graph, plan
from conformance.stage import STAGES, Stage
from conformance.triage.culprit import Culprit
from conformance.triage.trail import Trail, flat


class AutoDeployTrail(Trail):
    """Its stages are lists of transforms: they are applied once more, one at a time."""

    def captured(self) -> list[fx.GraphModule]:
        found = self.compiled._graphs.get(Stage.CAPTURE)
        return [] if found is None else [flat(graph.copied(found))]

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        if stage not in (Stage.DECOMPOSITION, Stage.POSTGRAD, Stage.FUSION):
            return None
        return self._unmatched(stage) if kind == "match_loss" else self._transform(stage)

    def _unmatched(self, stage: Stage) -> Culprit | None:
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
        moved = passes.moved(graph.copied(gm), self.case.run_device)
        outcome = oracle.run(self.compiled._callable(moved), self.case.inputs(0), self.compiled.module)
        found = oracle.compare(outcome, ref, strides=False)
        return str(found[0]) if found else ""

    def texts(self, stage: Stage) -> tuple[str, str]:
        texts = self.compiled.observe(stage).texts
        return texts.get("before", ""), texts.get("after", "")
