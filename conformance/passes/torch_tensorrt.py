"""A lowering pass or a converter of the user's own in a compile by Torch-TensorRT.

A lowering pass is a function `(gm, settings) -> gm`; it runs after Torch-TensorRT's own. The compile ends where engines would be built. A
converter is a function that the file has registered with `dynamo_tensorrt_converter`; it counts the nodes that it converts, and engines are
built.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from conformance import backends, oracle
from conformance.backends.base import Case
from conformance.backends.torch_tensorrt.capture import Refused
from conformance.backends.torch_tensorrt.compilation import Compilation
from conformance.backends.torch_tensorrt.compile_log import CompileLog
from conformance.backends.torch_tensorrt.seam import seam
from conformance.errors import UsageError, first_line, unknown
from conformance.graphs import copied, op_name, ops
from conformance.micrograph import Micrograph
from conformance.passes.application import LIMIT, Application, PassStopped, broken, counting, limited, rewritten
from conformance.passes.compare import ops_apart
from conformance.passes.examination import Examination
from conformance.passes.form import form_of
from conformance.passes.rungs import HOOK, Loss, Rung
from conformance.passes.soundness import Finding, as_finding, findings
from conformance.passes.subject import Subject, load_module
from conformance.stage import Stage
from conformance.target import Target

GRAPH = "the program that ran is the graph after the pass, on the CPU; no engine was built"
ENGINES = "engines were built and did not run: counts and graphs alone"
DECOMPOSITIONS = "Torch-TensorRT's decompositions"
CHOICE = "Torch-TensorRT's choice of converters (their priority, their capability validators, ops left to PyTorch)"


@dataclass
class Step:
    """A graph on the way to the pass or to the converter."""

    label: str
    stage: Stage
    gm: fx.GraphModule


class Stop(BaseException):
    """Raised where engines would be built."""


class TorchTensorRT:
    """A pass in the list of post-lowering passes, or a converter in the registry."""

    def __init__(self, address: str, target: str, limit: float = LIMIT) -> None:
        self.limit = limit
        self.raised: list[Exception] = []  # by a converter
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
        self.op, self.support = self._registered()
        self.converter = self.support is not None
        self.place = (
            f"converter of {op_name(self.op)}" if self.converter else "after Torch-TensorRT's post-lowering passes"
        )
        self.ran = ENGINES if self.converter else GRAPH

    def _registered(self) -> tuple[Any, Any]:
        """The op of a converter and its entry in the registry; None and None for a lowering pass."""
        for table in seam.converters.registries:
            for op, entry in table.items():
                for support in entry if isinstance(entry, (list, tuple)) else [entry]:
                    if getattr(support, "converter_implementation", support) is self.function:
                        return op, support
        return None, None

    def version(self) -> str:
        return f"{torch.__version__}, torch_tensorrt {seam.version()}"

    def prepare(self) -> None:
        """All is loaded."""

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
        given: list[Any] = []

        def examined_pass(gm: fx.GraphModule, settings: Any = None) -> fx.GraphModule:
            done, result = applied(subject, self.function, gm, settings, self.limit)
            applications.append(done)
            given.append(settings)
            if done.error is not None or done.broken:
                raise Stop
            return result

        def enough(proceed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            raise Stop

        with seam.replace(post_passes=[*seam.post_passes, examined_pass]), seam.subscribe(compile_module=enough):
            steps = self._compiled(made, compilation)
        for done in applications[:1]:
            self._said(made, done, subject, case)
            steps += _passes(compilation.log, examined_pass.__name__)
            tried = [applied(subject, self.function, copied(s.gm), given[0], self.limit)[0] for s in steps]
            made.rungs = [
                Rung(s.label, s.stage, dict(one.matches), form_of(s.gm)) for s, one in zip(steps, tried, strict=True)
            ]
            made.rungs.append(Rung(HOOK, Stage.POSTGRAD, made.matches, made.before))
            made.loss = loss_of(made.rungs, [ops(one.before) - ops(one.after) for one in tried])
        return made

    def _compiled(self, made: Examination, compilation: Compilation) -> list[Step]:
        """Compile; what is raised becomes a finding. Returns the graphs before the lowering passes."""
        steps: list[Step] = []

        def exported(proceed: Callable[..., Any], program: Any, *args: Any, **kwargs: Any) -> Any:
            steps.append(Step("torch.export's graph", Stage.CAPTURE, copied(program.graph_module)))
            return proceed(program, *args, **kwargs)

        with seam.subscribe(pre_export_lowering=exported):
            try:
                compilation.run()
            except Stop:
                pass
            except PassStopped as stopped:
                made.findings.append(Finding("timeout", str(stopped)))
            except Refused:
                raise
            except Exception as error:
                raised = any(error is own for own in self.raised)
                said = first_line(error)
                made.findings.append(
                    Finding("raised", said) if raised else Finding("crash", f"with it, the compile fails: {said}")
                )
        if compilation.log.decomposed is not None:
            steps.append(Step(DECOMPOSITIONS, Stage.DECOMPOSITION, compilation.log.decomposed))
        return steps

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
            steps = self._compiled(made, compilation)
        log = compilation.log
        steps += _passes(log)
        made.matches = {self.name: len(converted)}
        made.before = form_of(log.lowered) if log.lowered is not None else None
        made.nodes = [(self.name, converted)]
        made.built = bool(log.engines)
        made.rungs = [Rung(s.label, s.stage, {self.name: self._calls(s.gm)}, form_of(s.gm)) for s in steps]
        if log.lowered is not None:
            made.rungs.append(Rung(CHOICE, Stage.FUSION, made.matches, made.before))
            made.loss = loss_of(made.rungs, [Counter([op_name(self.op)])] * len(steps))
        return made

    def _calls(self, gm: fx.GraphModule) -> int:
        """The nodes that the converter is for."""
        return sum(node.op == "call_function" and node.target == self.op for node in gm.graph.nodes)

    @contextmanager
    def _counted(self) -> Iterator[list[str]]:
        converted: list[str] = []
        support, function = self.support, self.function
        assert support is not None and function is not None

        def counted(ctx: Any, target: Any, args: Any, kwargs: Any, name: str) -> Any:
            converted.append(name)
            try:
                with limited(self.limit):
                    return function(ctx, target, args, kwargs, name)
            except Exception as error:
                self.raised.append(error)
                raise

        object.__setattr__(support, "converter_implementation", counted)
        try:
            yield converted
        finally:
            object.__setattr__(support, "converter_implementation", function)


def _passes(log: CompileLog, until: str = "") -> list[Step]:
    """The graph after every post-lowering pass of Torch-TensorRT's that changed it, up to the one of this name."""
    runs = itertools.takewhile(lambda run: run.name != until, log.passes)
    return [Step(f"the post-lowering pass {r.name}", Stage.POSTGRAD, r.graph) for r in runs if r.graph is not None]


def loss_of(rungs: Sequence[Rung], replaced: Sequence[Counter[str]]) -> Loss | None:
    """The step after which the pass finds less; None where it finds as much as at any step. `replaced` has, for every rung but the last, the
    ops that the pass replaces there: one that the next graph does not have was decomposed."""
    given = rungs[-1].total
    last = next((i for i in reversed(range(len(rungs) - 1)) if rungs[i].total > given), None)
    if last is None:
        return None
    before, after = rungs[last], rungs[last + 1]
    step = after.label
    if step == DECOMPOSITIONS and after.form is not None:
        left = {op.target for op in after.form.calls()}
        gone = [op for op in replaced[last] if op not in left]
        step = f"the decomposition of {', '.join(gone)}" if gone else f"{step} ({ops_apart(before, after)})"
    return Loss(after.stage, step, f"{before.total} in {before.label}, {after.total} after this step")


def _compared(outcome: oracle.Outcome, reference: oracle.Reference) -> list[oracle.Difference]:
    """Values alone: a graph on its own has another calling convention than the module."""
    if outcome.error is not None:
        return oracle.compare(outcome, reference)
    outcome.spec = reference.eager.spec if len(outcome.outputs) == len(reference.eager.outputs) else outcome.spec
    return [d for d in oracle.compare(outcome, reference, strides=False, aliases=False) if d.where.startswith("output")]


def applied(
    subject: Subject, function: Any, gm: fx.GraphModule, settings: Any, limit: float
) -> tuple[Application, fx.GraphModule]:
    """A lowering pass run on a graph module: what it did, and the module that it returned."""
    done = Application("inference", copied(gm))
    result = gm
    try:
        with limited(limit), counting(subject, done):
            result = function(gm, settings)
    except (Exception, PassStopped) as error:
        done.error = error
        return done, gm
    if not isinstance(result, fx.GraphModule):
        done.broken = f"it returned {type(result).__name__}, not a GraphModule"
        return done, gm
    done.broken = broken(result.graph)
    if done.broken:
        return done, gm
    done.after = copied(result)
    if not done.matches:
        done.matches = rewritten(done.before, done.after)
    return done, result
