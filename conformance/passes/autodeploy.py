"""A transform of the user's own in AutoDeploy's pipeline: a class derived from its `BaseTransform`, with a config beside it.

backend = "autodeploy"
config = {"stage": "post_load_fusion"}      # settings of the transform, as default.yaml has them
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from conformance.autodeploy.harness import Harness, Report
from conformance.backends.autodeploy import fake_cuda
from conformance.errors import UsageError, unknown
from conformance.micrograph import Micrograph, snake
from conformance.passes.examination import Examination
from conformance.passes.form import form_of
from conformance.passes.soundness import Finding, as_finding
from conformance.passes.subject import load_module


class AutoDeploy:
    """A transform, run after all that come before it in AutoDeploy's own order."""

    target = "cpu"

    def __init__(self, address: str, kernels: str) -> None:
        file, _, name = address.rpartition(":")
        self.harness, self.kernels = Harness(), kernels
        with self.harness.loaded.active(), fake_cuda.answers():
            module = load_module(Path(file))
        value = getattr(module, name, None)
        if not isinstance(value, type):
            raise unknown(
                f"transform class in {file}", name, [k for k, v in vars(module).items() if isinstance(v, type)]
            )
        self.name = self._registered(value)
        self.config: dict[str, Any] = dict(getattr(module, "config", {}))
        self.micrographs = str(getattr(module, "micrographs", "")) or "norm.decoder_block"
        stage = self.config.get("stage", "post_load_fusion")
        self.place = f"AutoDeploy's {stage}, {kernels} kernels, of {self.harness.loaded.found}"

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

    def examine(self, cls: type[Micrograph]) -> Examination:
        made = Examination(self.name, cls.name(), self.target, self.version())
        try:
            report = self.harness.run(self.name, cls, self.kernels, **self.config)
        except UsageError as refused:
            made.skipped = str(refused)
            return made
        made.matches = {self.name: report.matches}
        made.before, made.after = form_of(report.before), form_of(report.after)
        gone = [name for name in made.before.ops if name not in made.after.ops]
        made.nodes = [(self.name, gone)] if report.matches else []
        made.findings = _findings(report)
        return made


def _findings(report: Report) -> list[Finding]:
    found = [Finding("raised", f"{result.name}: {result.reason}") for result in report.failures]
    if found:
        return found
    found += [
        Finding("metadata_loss", f"{name} has no `val`: no shape, dtype or stride") for name in report.lost_metadata[:1]
    ]
    found += [Finding("wrong_metadata", said) for said in report.wrong_metadata[:1]]
    found += [Finding("lost_read", said) for said in report.lost_reads[:1]]
    try:
        return [*found, *map(as_finding, report.from_eager())]
    except UsageError as cannot:
        return [*found, Finding("not_run", str(cannot))]
