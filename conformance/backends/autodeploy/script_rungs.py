"""The rungs at which scripts that use AutoDeploy are held, and the transform at fault, by leaving transforms out.

Held are the export (`torch_export_to_gm`) and every transform, whether a script runs them one by one or through
`InferenceOptimizer`. From a checkout that nobody built, AutoDeploy is importable inside a held run; alone, a script
needs the lines of `prelude` before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch

from conformance.backends.autodeploy import fake_cuda, repro
from conformance.backends.autodeploy.loader import find, load
from conformance.backends.autodeploy.plan import STAGES_OF
from conformance.stage import Stage
from conformance.triage.ablation import Ablation
from conformance.triage.adapter import Adapter
from conformance.triage.culprit import Culprit
from conformance.triage.hold import Hold, Journal
from conformance.triage.ladder import Climb, Rung
from conformance.triage.runs import Runs
from conformance.triage.subject import Subject

Proceed = Callable[..., Any]
RUNGS = (
    Rung("eager", None, "nothing is exported, no transform runs"),
    Rung("captured", Stage.CAPTURE, "the exported graph runs as it is"),
    Rung("decomposed", Stage.DECOMPOSITION, "with the transforms that clean the exported graph"),
    Rung("matched", Stage.POSTGRAD, "with the pattern matchers, too"),
    Rung("fused", Stage.FUSION, "with the fusions, too"),
    Rung("whole", Stage.CODEGEN, "caches and the compile backend as usual", costly=True),
)
# AutoDeploy's stages whose transforms are left out at each rung. Those that make the model and load its weights always run.
LATE = ("cache_init", "visualize", "compile")
LEFT_OUT = {
    "fused": LATE,
    "matched": ("post_load_fusion", *LATE),
    "decomposed": ("pattern_matcher", "sharding", "post_load_fusion", *LATE),
    "captured": ("post_export", "pattern_matcher", "sharding", "post_load_fusion", *LATE),
    "eager": ("export", "post_export", "pattern_matcher", "sharding", "post_load_fusion", *LATE),
}
OF_RUNG = {rung.stage: rung.name for rung in RUNGS}


class Holder:
    """The subscribers to the seam that hold the export and the transforms at a rung."""

    def __init__(self, hold: Hold, journal: Journal) -> None:
        self.rung, self.off, self.journal = hold.rung, {*hold.off}, journal

    def export(self, proceed: Proceed, model: Any, *args: Any, **kwargs: Any) -> Any:
        return model if self.rung == "eager" else proceed(model, *args, **kwargs)

    def transform(self, proceed: Proceed, transform: Any, mod: Any, *args: Any, **kwargs: Any) -> Any:
        name, stage = transform.get_transform_key(), transform.config.stage
        stage = str(getattr(stage, "value", stage))
        if stage in LEFT_OUT.get(self.rung, ()) or f"transform {name}" in self.off:
            return mod
        self.journal.write("transform", name=name, stage=stage)
        return proceed(transform, mod, *args, **kwargs)


@contextmanager
def holding(hold: Hold, journal: Journal) -> Iterator[None]:
    """Everything that AutoDeploy exports and transforms inside is held."""
    loaded, holder = load(), Holder(hold, journal)
    with ExitStack() as stack:
        stack.enter_context(loaded.active())
        stack.enter_context(fake_cuda.answers())
        stack.enter_context(loaded.seam.subscribe(export=holder.export, apply_transform=holder.transform))
        yield


class AutoDeployAdapter(Adapter):
    """How scripts that use AutoDeploy are triaged."""

    entry = "AutoDeploy"
    rungs = RUNGS

    def prepare(self) -> None:
        """Where there is a GPU, it is imported in the process of each run: it asks for it, and a process that has done
        so cannot fork."""
        if not torch.cuda.is_available():
            load()

    def hold(self, held: Hold, journal: Journal) -> AbstractContextManager[None]:
        return holding(held, journal)

    def prelude(self) -> str:
        return f"{repro.UNBUILT.strip()}\n\n\nbegin()\n" if find().form == "checkout" else ""

    def culprit(self, runs: Runs, subject: Subject, climb: Climb, stage: Stage) -> Culprit:
        if stage is Stage.CAPTURE:
            return Culprit("capture", "torch_export_to_gm", "the exported graph, run as it is, is wrong already")
        rung = OF_RUNG[stage]
        ran = [
            event for event in climb.endings[rung].named("transform") if STAGES_OF.get(event["stage"], stage) is stage
        ]
        names = list(dict.fromkeys(str(event["name"]) for event in ran))
        return Ablation(runs, subject, Hold(rung)).named("transform", names)

    def cures(self, stage: Stage, culprit: Culprit | None) -> list[tuple[str, ...]]:
        package = find().package
        interface = f"from {package}.transform.interface import BaseTransform"
        nothing = (
            interface,
            f"from {package} import export",
            "export.torch_export_to_gm = lambda model, *_, **__: model",
            "BaseTransform.__call__ = lambda self, mod, *rest: mod",
        )
        if culprit is None or not culprit.steps:
            return [nothing]
        names = [step.name for step in culprit.steps]
        left_out = f"mod if self.get_transform_key() in {names} else apply(self, mod, *rest)"
        lines = ("apply = BaseTransform.__call__", f"BaseTransform.__call__ = lambda self, mod, *rest: {left_out}")
        return [(interface, *lines), nothing]
