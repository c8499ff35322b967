"""A lowering pass or a converter of the user's own in a compile by Torch-TensorRT.

A lowering pass is a function `(gm, settings) -> gm`; it runs after Torch-TensorRT's own. The compile ends where engines would be built. A
converter is a function that the file has registered with `dynamo_tensorrt_converter`; it counts the nodes that it converts, and engines are
built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import fx

from conformance import backends, oracle
from conformance.backends.base import Case
from conformance.backends.torch_tensorrt.capture import Refused
from conformance.backends.torch_tensorrt.compilation import Compilation
from conformance.backends.torch_tensorrt.seam import seam
from conformance.errors import UsageError, first_line, unknown
from conformance.graphs import copied, ops
from conformance.micrograph import Micrograph
from conformance.passes.application import Application, PassStopped, broken, counting, limited
from conformance.passes.examination import Examination
from conformance.passes.form import form_of
from conformance.passes.soundness import Finding, as_finding, findings
from conformance.passes.subject import Subject, load_module
from conformance.stage import Stage
from conformance.target import Target

LIMIT = 20.0


class Stop(BaseException):
    """Raised where engines would be built."""


class TorchTensorRT:
    """A pass in the list of post-lowering passes, or a converter in the registry."""

    def __init__(self, address: str, target: str) -> None:
        backend = backends.get("torch_tensorrt")
        self.target = backend.default_target if target == "cpu" else target
        reasons = backend.unavailable(Target.parse(self.target))
        if Stage.POSTGRAD in reasons:
            raise UsageError(reasons[Stage.POSTGRAD])
        file, _, self.name = address.rpartition(":")
        with seam.resolving():
            module = load_module(Path(file))
        self.function = getattr(module, self.name, None)
        if not callable(self.function):
            raise unknown(f"pass in {file}", self.name, [k for k, v in vars(module).items() if callable(v)])
        self.micrographs = str(getattr(module, "micrographs", "")) or "norm.rmsnorm"
        self.converter = self._support() is not None
        self.place = "a converter" if self.converter else "after Torch-TensorRT's post-lowering passes"

    def _support(self) -> Any:
        """The registry's entry of a converter; None for a lowering pass."""
        registry = seam.converters
        for table in registry.registries:
            for entry in table.values():
                for support in entry if isinstance(entry, (list, tuple)) else [entry]:
                    if getattr(support, "converter_implementation", support) is self.function:
                        return support
        return None

    def version(self) -> str:
        return f"{torch.__version__}, torch_tensorrt {seam.version()}"

    def examine(self, cls: type[Micrograph]) -> Examination:
        made = Examination(self.name, cls.name(), self.target, self.version())
        case = Case(cls, Target.parse(self.target))
        compilation = Compilation(case, case.module().eval())
        try:
            return self._converted(made, compilation) if self.converter else self._lowered(made, compilation, case)
        except Refused as refused:
            made.skipped = str(refused)
            return made

    # ------------------------------------------------------------------------------------------ lowering pass

    def _lowered(self, made: Examination, compilation: Compilation, case: Case) -> Examination:
        applications: list[Application] = []
        subject = Subject(self.name, lambda graph: None)

        def watched(gm: fx.GraphModule, settings: Any = None) -> fx.GraphModule:
            done, result = applied(subject, self.function, gm, settings)
            applications.append(done)
            if done.error is not None or done.broken:
                raise Stop
            return result

        def enough(proceed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            raise Stop

        with seam.replace(post_passes=[*seam.post_passes, watched]), seam.subscribe(compile_module=enough):
            try:
                compilation.run()
            except Stop:
                pass
            except Refused:
                raise
            except Exception as error:
                made.findings.append(Finding("crash", first_line(error)))
        for done in applications[:1]:
            self._said(made, done, subject, case)
        return made

    def _said(self, made: Examination, done: Application, subject: Subject, case: Case) -> None:
        made.matches = dict(done.matches) or {self.name: 0}
        made.before = form_of(done.before)
        made.nodes = done.nodes
        made.findings = [f for f in findings(subject, done) if f.kind != "not_idempotent"]
        if done.after is None or any(f.kind in ("raised", "timeout", "broken_graph") for f in made.findings):
            return
        made.after = form_of(done.after)
        inputs = case.inputs()
        reference = oracle.reference(case.module().eval(), inputs)
        outcome = oracle.run(done.after, oracle.clone_inputs(inputs))
        plain = oracle.run(done.before, oracle.clone_inputs(inputs))
        known = {(d.kind, d.where) for d in _compared(plain, reference)}
        made.findings += [as_finding(d) for d in _compared(outcome, reference) if (d.kind, d.where) not in known]

    # ---------------------------------------------------------------------------------------------- converter

    def _converted(self, made: Examination, compilation: Compilation) -> Examination:
        with self._counted() as converted:
            try:
                compilation.run()
            except Refused:
                raise
            except Exception as error:
                made.findings.append(Finding("raised", first_line(error)))
        made.matches = {self.name: len(converted)}
        if compilation.log.lowered is not None:
            made.before = form_of(compilation.log.lowered)
        made.nodes = [(self.name, converted)]
        made.built = True
        return made

    @contextmanager
    def _counted(self) -> Iterator[list[str]]:
        converted: list[str] = []
        support, function = self._support(), self.function
        assert support is not None and function is not None

        def counted(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> Any:
            converted.append(name)
            return function(ctx, target, args, kwargs, name)

        object.__setattr__(support, "converter_implementation", counted)
        try:
            yield converted
        finally:
            object.__setattr__(support, "converter_implementation", function)


def _compared(outcome: oracle.Outcome, reference: oracle.Reference) -> list[oracle.Difference]:
    """Values alone: a graph on its own has another calling convention than the module."""
    if outcome.error is not None:
        return oracle.compare(outcome, reference)
    outcome.spec = reference.eager.spec if len(outcome.outputs) == len(reference.eager.outputs) else outcome.spec
    return [d for d in oracle.compare(outcome, reference, strides=False, aliases=False) if d.where.startswith("output")]


def applied(subject: Subject, function: Any, gm: fx.GraphModule, settings: Any) -> tuple[Application, fx.GraphModule]:
    """A lowering pass run on a graph module: what it did, and the module that it returned."""
    done = Application("inference", copied(gm))
    result = gm
    try:
        with limited(LIMIT), counting(subject, done):
            result = function(gm, settings)
    except (Exception, PassStopped) as error:
        done.error = error
        return done, gm
    if not isinstance(result, fx.GraphModule):
        done.broken = f"it returned {type(result).__name__}, not a GraphModule"
        return done, gm
    done.broken = broken(result.graph)
    done.after = copied(result)
    if not done.matches:
        put_in = ops(done.after) - ops(done.before)
        done.matches.update(put_in)
    return done, result
