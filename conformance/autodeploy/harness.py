"""Runs any registered pass on any micrograph and says what it did: the graph around it, its matches, what it lost.

    report = Harness().run("fuse_add_rms_norm", "norm.decoder_block", option="flashinfer")
    assert report.matches == 2 and not report.lost_metadata and not report.differences()

AutoDeploy's passes come first, the older ones under `_torch/compilation` second.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import fx

from conformance import oracle
from conformance.autodeploy.legacy import Legacy
from conformance.autodeploy.reference import ReferenceKernels
from conformance.backends.autodeploy import fake_cuda, graph, plan
from conformance.backends.autodeploy.capture import Unsupported, capture
from conformance.backends.autodeploy.inplace_hazards import lost_reads
from conformance.backends.autodeploy.loader import Loaded, Missing, load
from conformance.backends.autodeploy.passes import Passes, PassResult
from conformance.backends.base import Case
from conformance.errors import UsageError, first_line, unknown
from conformance.library import load as load_micrographs
from conformance.micrograph import Micrograph
from conformance.stage import Stage
from conformance.target import CPU
from conformance.verdict import Kind

# What people call a pass → the transforms that do it today.
CHAINS: dict[str, tuple[str, ...]] = {"fuse_norm": ("match_rmsnorm_pattern", "fuse_rmsnorm", "fuse_add_rms_norm")}
DEFAULT_MICROGRAPH = "norm.decoder_block"
LAST = Stage.CODEGEN


@dataclass
class Report:
    """What one pass (or a chain of them) did to one micrograph."""

    name: str
    cls: type[Micrograph]
    option: str
    path: str  # autodeploy | legacy
    before: fx.GraphModule
    after: fx.GraphModule
    inputs: tuple[Any, ...]
    loaded: Loaded
    results: list[PassResult] = field(default_factory=list)
    earlier: list[PassResult] = field(default_factory=list)
    matches: int = 0
    lost_metadata: list[str] = field(default_factory=list)
    wrong_metadata: list[str] = field(default_factory=list)

    @property
    def micrograph(self) -> str:
        return self.cls.name()

    @property
    def added(self) -> dict[str, int]:
        return self._difference(self.after, self.before)

    @property
    def removed(self) -> dict[str, int]:
        return self._difference(self.before, self.after)

    @staticmethod
    def _difference(more: fx.GraphModule, less: fx.GraphModule) -> dict[str, int]:
        return dict(sorted((Counter(graph.op_counts(more)) - Counter(graph.op_counts(less))).items()))

    @property
    def failures(self) -> list[PassResult]:
        return [result for result in self.results if result.state in ("failed", "unavailable")]

    @property
    def lost_reads(self) -> list[str]:
        """Reads that come after a write which the pass brought in."""
        return lost_reads(self.after, {node.name for node in self.before.graph.nodes})

    def differences(self, exact: bool = True) -> list[oracle.Difference]:
        """Do the graphs before and after return the same values? Kernels of a GPU run as plain PyTorch. What fused
        kernels do to their inputs is not looked at here.

        exact   judge by the distance to what the module gives in fp64"""
        best = self._reference.exact if exact else None
        return output_differences(self.outcome(self.after), oracle.Reference(self.outcome(self.before), best))

    def from_eager(self) -> list[oracle.Difference]:
        """Does the graph after the pass still return what the module does?"""
        return output_differences(self.outcome(self.after), self._reference)

    @cached_property
    def _reference(self) -> oracle.Reference:
        return oracle.reference(self.cls.build(), self.inputs)

    def outcome(self, gm: fx.GraphModule) -> oracle.Outcome:
        inputs = oracle.clone_inputs(self.inputs)
        with self.loaded.active(), fake_cuda.answers(), ReferenceKernels():
            return oracle.run(gm, inputs)


def output_differences(got: oracle.Outcome, ref: oracle.Reference) -> list[oracle.Difference]:
    """The values of all outputs, whatever else the call did."""
    for outcome in (ref.eager, got):
        if outcome.error is not None:
            raise UsageError(f"the graph cannot run here: {first_line(outcome.error)}")
    if got.spec != ref.eager.spec:
        return [oracle.Difference(Kind.WRONG_METADATA, "outputs", f"structure {got.spec}, was {ref.eager.spec}")]
    found: list[oracle.Difference] = []
    exact = ref.exact.outputs if ref.exact else [None] * len(got.outputs)
    for index, (value, want, best) in enumerate(zip(got.outputs, ref.eager.outputs, exact, strict=True)):
        if isinstance(want, torch.Tensor) and (value.shape != want.shape or value.dtype != want.dtype):
            detail = f"{graph.shape_of(value)}, was {graph.shape_of(want)}"
            found.append(oracle.Difference(Kind.WRONG_METADATA, f"output {index}", detail))
        else:
            found += oracle.value_differences(f"output {index}", value, want, best)
    return found


def placed(config: dict[str, dict[str, Any]], name: str, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The configuration with one more transform, after all others of its stage."""

    def order(one: dict[str, Any]) -> int:
        return plan.STAGES_OF.get(one["stage"], LAST).order

    earlier = {n: s for n, s in config.items() if order(s) <= order(settings)}
    return {**earlier, name: settings, **{n: s for n, s in config.items() if n not in earlier}}


class Harness:
    def __init__(self, loaded: Loaded | None = None) -> None:
        self.loaded = loaded or load()
        self.passes = Passes(self.loaded)
        self.legacy = Legacy(self.loaded)

    @cached_property
    def micrographs(self) -> dict[str, type[Micrograph]]:
        return load_micrographs()

    def names(self) -> list[str]:
        """All that `run` takes."""
        legacy = [name for name in ("fuse_norm", "fix_functionalization") if self.legacy.has(name)]
        return sorted({*self.passes.names(), *CHAINS, *legacy})

    def run(
        self,
        name: str,
        micrograph: str | type[Micrograph] = DEFAULT_MICROGRAPH,
        option: str = "flashinfer",
        **settings: Any,
    ) -> Report:
        """The pass on the graph that AutoDeploy would give it: all earlier passes run first."""
        if option not in plan.OPTIONS:
            raise unknown("kernel option", option, plan.OPTIONS)
        cls = self._micrograph(micrograph)
        if name in CHAINS and all(self.passes.registry.has(part) for part in CHAINS[name]):
            return self._transforms(name, CHAINS[name], cls, option, settings)
        if self.passes.registry.has(name):
            return self._transforms(name, (name,), cls, option, settings)
        if name in ("fuse_norm", "fix_functionalization"):
            return self.run_legacy(name, cls)
        raise unknown("transform", name, self.names())

    # -------------------------------------------------------------------------------------------- AutoDeploy's

    def _transforms(
        self, name: str, parts: tuple[str, ...], cls: type[Micrograph], option: str, settings: dict[str, Any]
    ) -> Report:
        config = self._config(parts, option, settings)
        gm, case = self._captured(cls)
        order = list(config)
        first = order.index(parts[0])
        gm, earlier = self._run(gm, {n: config[n] for n in order[:first] if n not in parts})
        report = Report(
            name, cls, option, "autodeploy", graph.copied(gm), gm, case.inputs(), self.loaded, earlier=earlier
        )
        between = order[first : order.index(parts[-1]) + 1]
        gm, results = self._run(gm, {n: config[n] for n in between})
        report.results = [result for result in results if result.name in parts]
        report.earlier += [result for result in results if result.name not in parts]
        report.before, report.after = (self.passes.moved(g, "cpu") for g in (report.before, gm))
        report.matches = report.results[-1].matches if report.results else 0
        for result in report.results:
            report.lost_metadata += result.lost_metadata
            report.wrong_metadata += result.wrong_metadata
        return report

    def _config(self, parts: tuple[str, ...], option: str, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
        for part in parts:
            if part in plan.WHOLE_MODEL:
                raise UsageError(f"the transform {part!r} needs a whole language model: it cannot run on a micrograph")
        config = plan.configured(self.loaded, option)
        for part in parts:
            if part not in config:  # registered, but not listed in default.yaml or of a stage without graphs
                listed = plan.default_config(self.loaded).get(part, {})
                config = placed(config, part, {"stage": settings.get("stage", "post_load_fusion"), **listed})
            config[part] = {**config[part], "enabled": True, **(settings if part == parts[-1] else {})}
        return config

    def _captured(self, cls: type[Micrograph]) -> tuple[fx.GraphModule, Case]:
        case = Case(cls, CPU)
        try:
            return capture(self.loaded, case, case.module()).gm, case
        except Unsupported as error:
            raise UsageError(f"AutoDeploy cannot take {cls.name()}: {error}") from None

    def _run(self, gm: fx.GraphModule, config: dict[str, dict[str, Any]]) -> tuple[fx.GraphModule, list[PassResult]]:
        """In AutoDeploy's order; weights count as loaded before the fusions that follow it."""
        early = {n: s for n, s in config.items() if plan.STAGES_OF.get(s["stage"], LAST).order < Stage.FUSION.order}
        late = {n: s for n, s in config.items() if n not in early}
        gm, results = self.passes.run(gm, early)
        if late:
            gm, more = self.passes.run(self.passes.moved(gm, "cpu"), late)
            results += more
        return gm, results

    # --------------------------------------------------------------------------------------------- the older path

    def run_legacy(self, name: str, micrograph: str | type[Micrograph] = DEFAULT_MICROGRAPH) -> Report:
        """`fuse_norm` makes `auto_functionalized` calls of the in-place op; `fix_functionalization` makes them in-place again."""
        if not self.legacy.has(name):
            raise Missing(
                f"{self.loaded.found} has no legacy pass {name}: _torch/compilation is not there or was moved"
            )
        cls = self._micrograph(micrograph)
        gm, case = self._captured(cls)
        config = plan.configured(self.loaded, "torch")
        gm, earlier = self._run(
            gm, {**plan.of_stage(config, Stage.DECOMPOSITION), **plan.of_stage(config, Stage.POSTGRAD)}
        )
        gm = self.legacy.legacy_form(self.passes.moved(gm, "cpu"))
        if name == "fix_functionalization":
            gm = self.legacy.functionalized_form(gm)
        done = self.legacy.run(name, gm)
        new = {node.name for node in done.after.graph.nodes} - {node.name for node in gm.graph.nodes}
        lost = graph.without_metadata(node for node in done.after.graph.nodes if node.name in new)
        report = Report(name, cls, "flashinfer", "legacy", gm, done.after, case.inputs(), self.loaded, earlier=earlier)
        report.matches, report.lost_metadata = done.matches, lost
        return report

    def _micrograph(self, micrograph: str | type[Micrograph]) -> type[Micrograph]:
        if isinstance(micrograph, type):
            return micrograph
        if micrograph not in self.micrographs:
            raise unknown("micrograph", micrograph, self.micrographs)
        return self.micrographs[micrograph]
