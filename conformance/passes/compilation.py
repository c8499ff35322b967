"""One compile with a pass in it: every graph on the way to the pass, what the pass did, and what the program costs.

The compile is the real one: `torch.compile`, with the pass in the setting that Inductor has for it. How far it goes is its `End`: the
program that runs is the graph after all graph passes, unless code is built.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import fx

from conformance import oracle
from conformance.backends.inductor.cost import Cost
from conformance.backends.inductor.seam import BOXED, seam
from conformance.backends.inductor.triage.steps import pattern_name
from conformance.backends.inductor.watch import Watch
from conformance.graph_runner import GraphRunner
from conformance.graphs import copied
from conformance.passes.application import LIMIT, Application, PassStopped, Probe
from conformance.passes.subject import Subject
from conformance.stage import Stage
from conformance.target import CPU, Target

Proceed = Callable[..., Any]


class End(Enum):
    """Where a compile ends."""

    PASSES = "passes"  # after all graph passes: nothing is lowered
    CODE = "code"  # when the scheduler has made its code, which says what the program costs; nothing is built
    BUILD = "build"  # code is built and runs as usual


class Stop(BaseException):
    """Raised where the compile ends. No handler of the compiler's takes it for a failure."""


@dataclass
class Step:
    """A graph on the way to the pass. `label` says what had just been done; `patterns`, which patterns of torch's that applied."""

    label: str
    stage: Stage
    gm: fx.GraphModule
    role: str
    graph: int  # the number of the captured graph
    patterns: list[str] = field(default_factory=list)


@dataclass
class Compilation:
    """What one compile showed."""

    applications: list[Application] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    captured: list[tuple[fx.GraphModule, list[Any]]] = field(
        default_factory=list
    )  # Dynamo's graphs and their fake inputs
    watch: Watch = field(default_factory=Watch)
    inputs: list[tuple[Any, ...]] = field(default_factory=list)  # what each graph that ran was given, flat
    outcome: oracle.Outcome | None = None

    @property
    def matches(self) -> dict[str, int]:
        """Replaced patterns of all graphs of the program, by name."""
        found: dict[str, int] = {}
        for application in self.applications:
            for name, count in application.matches.items():
                found[name] = found.get(name, 0) + count
        return found

    @property
    def error(self) -> BaseException | None:
        return self.outcome.error if self.outcome is not None else None

    def kernels(self) -> int:
        return sum(len(graph.groups) + len(graph.externs) for graph in self.watch.graphs)

    def cost(self) -> Cost | None:
        """All graphs together; None where a size is not known."""
        costs = [graph.cost for graph in self.watch.graphs]
        if not costs or any(cost is None for cost in costs):
            return None
        known = [cost for cost in costs if cost is not None]
        return Cost(
            sum(cost.bytes for cost in known),
            sum(cost.temporaries for cost in known),
            max(cost.peak for cost in known),
        )


class Recorder:
    """The subscribers to the seam that follow one compile."""

    def __init__(self, subject: Subject | None, training: bool, end: End, limit: float) -> None:
        self.made = Compilation()
        self.training, self.end = training, end
        self.role = "joint" if training else "inference"
        self.graph = -1
        self.phase = ""
        self.depth: dict[str, int] = {}
        self.reached = False  # the pass has run on this graph: what comes later is not on the way to it
        self.last: Any = None  # digest of the newest graph that was seen
        self.applied: list[str] = []  # torch's patterns since then
        self.passed: fx.GraphModule | None = None
        self.probe = None if subject is None else Probe(subject, lambda: self.role, limit)
        if self.probe is not None:
            self.probe.applications = self.made.applications
            self.probe.reached = self._reach

    def subscribers(self) -> dict[str, Proceed]:
        own: dict[str, Proceed] = {
            "compile_fx": self.compile_fx,
            "pre_grad_passes": self.pre_grad_passes,
            "joint_passes": self.joint_passes,
            "post_grad_passes": self.post_grad_passes,
            "codegen_and_compile": self.codegen_and_compile,
            "graph_pass": self.run_pass,
            "graph_module_pass": self.run_pass,
            "lower": self.lower,
            "schedule": self.schedule,
            **dict.fromkeys(("lowering_pattern", "graph_pattern", "replacement_pattern"), self.pattern),
        }
        return {key: function for key, function in own.items() if seam.has(key)}

    # ----------------------------------------------------------------------------------------- the way there

    def _step(self, label: str, stage: Stage, gm: Any) -> None:
        if self.reached or not isinstance(gm, fx.GraphModule):
            return
        seen = digest(gm)
        if seen != self.last:
            step = Step(label, stage, copied(gm), self.role, self.graph, list(dict.fromkeys(self.applied)))
            self.made.steps.append(step)
            self.last = seen
        self.applied = []

    def _reach(self, gm: fx.GraphModule) -> None:
        self._step("a step that torch does not name, before the pass", Stage.POSTGRAD, gm)
        self.reached = True

    @contextmanager
    def _inside(self, key: str) -> Iterator[bool]:
        """Yields whether this is the outermost call of a function that calls itself for subgraphs."""
        self.depth[key] = self.depth.get(key, 0) + 1
        previous, self.phase = self.phase, key
        try:
            yield self.depth[key] == 1
        finally:
            self.depth[key] -= 1
            self.phase = previous

    def compile_fx(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(proceed).bind(*args, **kwargs)
        gm = next(iter(bound.arguments.values()))
        if self.depth.get("compile_fx") or not isinstance(gm, fx.GraphModule):
            return proceed(*args, **kwargs)
        self.graph += 1
        self.reached, self.last, self.role = False, None, "joint" if self.training else "inference"
        self.made.captured.append((copied(gm), list(bound.arguments["example_inputs_"])))
        self._step("Dynamo's graph", Stage.CAPTURE, gm)
        if self.end is not End.BUILD:
            inner = bound.arguments.get("inner_compile") or seam.compile_fx_inner
            bound.arguments["inner_compile"] = self._inner_compile(inner)
        with self._inside("compile_fx"):
            return proceed(*bound.args, **bound.kwargs)

    def pre_grad_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._inside("pre_grad"):
            return proceed(gm, *args, **kwargs)

    def joint_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._inside("joint") as outermost:
            if outermost:
                self._step("AOTAutograd's graph", Stage.DECOMPOSITION, gm)
            return proceed(gm, *args, **kwargs)

    def codegen_and_compile(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        self.role = "backward" if kwargs.get("is_backward") else "forward" if self.training else "inference"
        if self.training:
            self.reached = False
        return proceed(gm, *args, **kwargs)

    def post_grad_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._inside("post_grad") as outermost:
            if outermost:
                named = "the partitioner" if self.training else "what follows the joint graph passes"
                self._step(named, Stage.POSTGRAD, gm)
            result = proceed(gm, *args, **kwargs)
        if outermost:
            self.passed = gm
        return result

    def run_pass(self, proceed: Proceed, observer: Any, function: Any) -> Any:
        stage = Stage.CAPTURE if self.phase == "pre_grad" else Stage.POSTGRAD
        self._step(f"a step that torch does not name, before {observer.passname}", stage, observer.gm)
        result = proceed(observer, function)
        phase = {"pre_grad": "pre-grad", "joint": "joint graph", "post_grad": "post-grad"}.get(self.phase, self.phase)
        self._step(f"the {phase} pass {observer.passname}", stage, observer.gm)
        return result

    def pattern(self, proceed: Proceed, entry: Any, *args: Any) -> Any:
        self.applied.append(pattern_name(entry))
        return proceed(entry, *args)

    # ----------------------------------------------------------------------------------------- the program

    def schedule(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        result = proceed(*args, **kwargs)
        if self.end is End.CODE and self.passed is not None:
            raise Stop
        return result

    def lower(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        if self.end is End.PASSES and self.passed is not None:
            raise Stop
        return proceed(*args, **kwargs)

    def _inner_compile(self, inner: Proceed) -> Proceed:
        def compile_graph(gm: fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
            self.passed = None
            try:
                return inner(gm, example_inputs, **kwargs)
            except Stop:
                assert self.passed is not None
                return boxed(copied(self.passed), self.made.inputs)

        return compile_graph


def boxed(gm: fx.GraphModule, given: list[tuple[Any, ...]]) -> Callable[[list[Any]], Any]:
    """The graph as a function that takes its inputs in a list, which it empties. Copies of them are kept in `given`."""

    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        given.append(tuple(x.detach().clone() if isinstance(x, torch.Tensor) else x for x in values))
        arguments.clear()
        return GraphRunner(gm).run(*values, enable_io_processing=False)

    setattr(run, BOXED, True)
    return run


def digest(gm: fx.GraphModule) -> int:
    """Changes whenever a pass changes the graph."""
    return hash(tuple((n.name, str(n.target), str(n.args), str(n.kwargs)) for n in gm.graph.nodes))


# ------------------------------------------------------------------------------------------------ compiling


@contextmanager
def recording(
    subject: Subject | None, *, training: bool = False, end: End = End.CODE, limit: float = LIMIT
) -> Iterator[Compilation]:
    """Every compile inside has the pass in it, starts from empty caches, and is followed."""
    recorder = Recorder(subject, training, end, limit)
    watch = recorder.made.watch
    observing = {key: getattr(watch, key) for key in ("codegen_and_compile", "post_grad_passes", "schedule")}
    with ExitStack() as stack:
        settings: dict[str, Any] = {"force_disable_caches": True}
        if end is not End.BUILD:
            settings["cpp.vec_isa_ok"] = True  # Inductor would build a program to see whether vector instructions work
        if subject is not None and recorder.probe is not None:
            settings[subject.hook.setting] = recorder.probe.custom_pass()
        stack.enter_context(seam.config.patch(settings))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
        if seam.has("functorch_config"):
            stack.enter_context(seam.functorch_config.patch(enable_autograd_cache=False))
        stack.enter_context(seam.subscribe(**{key: function for key, function in observing.items() if seam.has(key)}))
        stack.enter_context(seam.subscribe(**recorder.subscribers()))
        yield recorder.made


def compile_with(
    subject: Subject | None,
    module: Any,
    inputs: tuple[Any, ...],
    *,
    target: Target = CPU,
    options: dict[str, Any] | None = None,
    end: End = End.CODE,
    limit: float = LIMIT,
) -> Compilation:
    """Compile the module with the pass and call it once. What is raised is kept in the outcome."""
    training = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    seam.reset()
    with recording(subject, training=training, end=end, limit=limit) as made:
        program = _program(module, target, options or {})
        try:
            made.outcome = oracle.run(program, oracle.clone_inputs(inputs), module)
        except PassStopped as stopped:
            made.outcome = oracle.Outcome(error=RuntimeError(str(stopped)))
    seam.reset()
    return made


def _program(module: Any, target: Target, options: dict[str, Any]) -> Callable[..., Any]:
    if target.headless:
        from conformance.headless.program import Program

        return Program(module, target)
    return torch.compile(module, **options)
