"""The rungs at which scripts that use Torch-TensorRT are held, and the culprit inside each stage, by leaving steps out.

Held are `torch_tensorrt.compile`, `torch_tensorrt.dynamo.compile` and the backend of torch.compile. The package is
imported in the process of each run: where there is a GPU, it asks for it, and a process that has done so cannot fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch

from conformance.backends.torch_tensorrt.seam import PASSES, not_importable
from conformance.backends.torch_tensorrt.seam import of_scripts as seam
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
    Rung("eager", None, "nothing is compiled"),
    Rung("captured", Stage.CAPTURE, "the exported program runs"),
    Rung("decomposed", Stage.DECOMPOSITION, "the program runs with Torch-TensorRT's decompositions"),
    Rung("lowered", Stage.POSTGRAD, "the graph after all lowering passes runs in PyTorch"),
    Rung("whole", Stage.CODEGEN, "engines as usual", costly=True),
)


class Exported(BaseException):
    """Raised where lowering would begin: the exported program runs instead. No handler of the compiler's takes it for
    a failure."""

    def __init__(self, program: Any) -> None:
        self.program = program


class Holder:
    """The subscribers to the seam that hold compiles at a rung."""

    def __init__(self, hold: Hold, journal: Journal) -> None:
        self.rung, self.off, self.journal = hold.rung, {*hold.off}, journal

    def subscribers(self) -> dict[str, Proceed]:
        own: dict[str, Proceed] = {
            "compile_anything": self.compile,
            "compile_exported": self.compile,
            "call_backend": self.call_backend,
            "pre_export_lowering": self.pre_export_lowering,
        }
        for where in ("", " of the backend"):
            own |= {f"post_lowering{where}": self.post_lowering, f"compile_module{where}": self.compile_module}
        return {key: function for key, function in own.items() if seam.has(key)}

    def compile(self, proceed: Proceed, program: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rung == "eager":
            return program.module() if isinstance(program, torch.export.ExportedProgram) else program
        try:
            return proceed(program, *args, **kwargs)
        except Exported as exported:
            return exported.program.module()

    def call_backend(self, proceed: Proceed, output: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        kept = output.compiler_fn
        if self.rung == "captured":
            output.compiler_fn = lambda gm, inputs: gm.forward
        try:
            return proceed(output, gm, *args, **kwargs)
        finally:
            output.compiler_fn = kept

    def pre_export_lowering(self, proceed: Proceed, program: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rung == "captured":
            raise Exported(program)
        return proceed(program, *args, **kwargs)

    def post_lowering(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rung == "decomposed":
            return gm
        passes = seam.post_passes
        kept = list(passes)
        self.journal.write("passes", names=[step.__name__ for step in kept])
        try:
            passes[:] = [step for step in kept if f"pass {step.__name__}" not in self.off]
            return proceed(gm, *args, **kwargs)
        finally:
            passes[:] = kept

    def compile_module(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        return gm if self.rung in ("decomposed", "lowered") else proceed(gm, *args, **kwargs)


@contextmanager
def holding(hold: Hold, journal: Journal) -> Iterator[None]:
    """Everything that Torch-TensorRT compiles inside is held."""
    if why := not_importable():
        raise RuntimeError(why)
    with ExitStack() as stack:
        stack.enter_context(seam.subscribe(**Holder(hold, journal).subscribers()))
        if hold.rung == "eager":
            torch.compiler.set_stance("force_eager")
        yield


class TorchTensorRTAdapter(Adapter):
    """How scripts that use Torch-TensorRT are triaged."""

    entry = "Torch-TensorRT"
    rungs = RUNGS

    def hold(self, held: Hold, journal: Journal) -> AbstractContextManager[None]:
        return holding(held, journal)

    def culprit(self, runs: Runs, subject: Subject, climb: Climb, stage: Stage) -> Culprit:
        failing = climb.first_failing
        if stage is Stage.POSTGRAD:
            return self._pass(runs, subject, climb)
        names = {
            Stage.CAPTURE: ("capture", "torch.export", "the exported program, run as it is, is wrong already"),
            Stage.DECOMPOSITION: ("decomposition", "Torch-TensorRT's decompositions", "right without them"),
        }
        engine = ("engine", "conversion and TensorRT", "the graph that engines are made of is right in PyTorch")
        what, name, why = names.get(stage, engine)
        return Culprit(what, name, why if failing is not None else "no rung fails")

    def _pass(self, runs: Runs, subject: Subject, climb: Climb) -> Culprit:
        """The lowering pass without which the subject is right."""
        listed = climb.endings["lowered"].named("passes")
        return Ablation(runs, subject, Hold("lowered")).named("pass", listed[-1]["names"] if listed else ())

    def cures(self, stage: Stage, culprit: Culprit | None) -> list[tuple[str, ...]]:
        nothing = (
            "import torch",
            "import torch_tensorrt",
            'torch.compiler.set_stance("force_eager")',
            "torch_tensorrt.compile = torch_tensorrt.dynamo.compile = lambda program, *_, **__: (",
            '    program.module() if hasattr(program, "graph_signature") else program',
            ")",
        )
        steps = culprit.steps if culprit is not None else []
        if not steps:
            return [nothing]
        left = [
            f'lowering.passes[:] = [step for step in lowering.passes if step.__name__ != "{one.name}"]' for one in steps
        ]
        return [(f"from {PASSES} import ATEN_POST_LOWERING_PASSES as lowering", *left), nothing]
