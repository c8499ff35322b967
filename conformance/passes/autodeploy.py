"""A transform of the user's own in AutoDeploy's pipeline: a class derived from its `BaseTransform`, with a config beside it.

backend = "autodeploy"
config = {"stage": "post_load_fusion"}      # settings of the transform, as default.yaml has them
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from conformance.autodeploy.harness import Harness, Report
from conformance.backends.autodeploy import fake_cuda, plan
from conformance.errors import UsageError, unknown
from conformance.micrograph import Micrograph, snake
from conformance.passes.application import LIMIT, PassStopped, broken, limited
from conformance.passes.examination import Examination
from conformance.passes.form import form_of
from conformance.passes.rungs import HOOK, Loss, Rung
from conformance.passes.soundness import Finding, as_finding, lost_writes
from conformance.passes.subject import load_module
from conformance.stage import Stage

EARLIER = ("post_export", "pattern_matcher", "post_load_fusion")  # AutoDeploy's stages that have graphs, in order


class AutoDeploy:
    """A transform, run after all that come before it in AutoDeploy's own order."""

    target = "cpu"
    ran = "the program that ran is the graph after the transform, with GPU kernels as plain PyTorch"

    def __init__(self, address: str, kernels: str, deep: bool = True, limit: float = LIMIT) -> None:
        file, _, name = address.rpartition(":")
        self.harness, self.kernels, self.deep, self.limit = Harness(), kernels, deep, limit
        with self.harness.loaded.active(), fake_cuda.answers():
            module = load_module(Path(file))
        value = getattr(module, name, None)
        if not isinstance(value, type):
            raise unknown(
                f"transform class in {file}", name, [k for k, v in vars(module).items() if isinstance(v, type)]
            )
        if not any(base.__name__ == "BaseTransform" for base in value.__mro__):
            raise UsageError(f"{name} in {file} is no transform: derive it from AutoDeploy's BaseTransform")
        self.transform = value
        self.name = self._registered(value)
        self.config: dict[str, Any] = dict(getattr(module, "config", {}))
        self.micrographs = str(getattr(module, "micrographs", "")) or "norm.decoder_block"
        self.stage = str(self.config.get("stage", "post_load_fusion"))
        self.place = f"AutoDeploy's {self.stage}, {kernels} kernels, of {self.harness.loaded.found}"

    def _registered(self, value: type) -> str:
        """The name under which AutoDeploy knows the class; registered here where its author has not done so."""
        for name, known in self.harness.passes.seam.registered.items():
            if known is value:
                return str(name)
        name = snake(value.__name__)
        with self.harness.loaded.active():
            self.harness.passes.registry.register(name)(value)
        return name

    def version(self) -> str:
        return str(torch.__version__)

    def prepare(self) -> None:
        """All is loaded."""

    def examine(self, cls: type[Micrograph]) -> Examination:
        made = Examination(self.name, cls.name(), self.target, self.version())
        try:
            with self._limited():
                report = self.harness.run(self.name, cls, self.kernels, **self.config)
        except UsageError as refused:
            made.skipped = str(refused)
            return made
        except PassStopped as stopped:
            made.findings = [Finding("timeout", str(stopped))]
            return made
        made.matches = {self.name: report.matches}
        made.before, made.after = form_of(report.before), form_of(report.after)
        gone = [name for name in made.before.ops if name not in made.after.ops]
        made.nodes = [(self.name, gone)] if report.matches else []
        made.findings = _findings(report)
        if self.deep and not made.total and not made.findings:
            self._why(made, cls, report)
        return made

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Inside, the transform is stopped when it takes longer than its limit; those that run before it are not."""
        original = self.transform.__call__

        def call(transform: Any, *args: Any, **kwargs: Any) -> Any:
            with limited(self.limit):
                return original(transform, *args, **kwargs)

        with mock.patch.object(self.transform, "__call__", call):
            yield

    def _why(self, made: Examination, cls: type[Micrograph], report: Report) -> None:
        """The transform tried at the end of every earlier stage of AutoDeploy's: what ran after the last match took it away."""
        for stage in EARLIER[: EARLIER.index(self.stage)] if self.stage in EARLIER else EARLIER:
            earlier = self.harness.run(self.name, cls, self.kernels, **{**self.config, "stage": stage})
            matches = {self.name: earlier.matches}
            made.rungs.append(Rung(f"AutoDeploy's {stage}", plan.STAGES_OF[stage], matches, form_of(earlier.before)))
        made.rungs.append(Rung(HOOK, plan.STAGES_OF.get(self.stage, Stage.FUSION), made.matches, made.before))
        last = next((i for i in reversed(range(len(made.rungs))) if made.rungs[i].total), None)
        if last is not None:
            after = EARLIER[last + 1] if last + 1 < len(EARLIER) else self.stage
            ran = [r.name for r in report.earlier if r.stage == after and r.matches]
            why = f"the transform finds {made.rungs[last].total} after {made.rungs[last].label}, none later"
            made.loss = Loss(plan.STAGES_OF.get(after), f"{after}: {', '.join(ran) or 'its transforms'}", why)


def _findings(report: Report) -> list[Finding]:
    found = [Finding("raised", f"{result.name}: {result.reason}") for result in report.failures]
    if found:
        return found
    if said := broken(report.after.graph):
        return [Finding("broken_graph", said)]
    found += [
        Finding("metadata_loss", f"{name} has no `val`: no shape, dtype or stride") for name in report.lost_metadata[:1]
    ]
    found += [Finding("wrong_metadata", said) for said in report.wrong_metadata[:1]]
    found += [Finding("lost_read", said) for said in report.lost_reads[:1]]
    found += list(lost_writes(report.before, report.after))
    try:
        return [*found, *map(as_finding, report.from_eager())]
    except UsageError as cannot:
        return [*found, Finding("not_run", str(cannot))]
