"""Hold every compile of this process at one rung, with single steps turned off, and write down the way that compiles
take.

    with holding(Hold("decomposed"), journal): ...

Rungs, in the order of the compiler: `eager` (torch.compile does nothing), `captured` (Dynamo's graph runs), `traced`
(AOTAutograd's graph without decompositions runs), `decomposed`, `joint` (after the passes before and on the joint
graph), `passed` (after all graph passes), `unfused` and `program` (the generated program with nothing fused, and as
usual, called directly), `uncached` (called as usual, without the caches), `whole` (the program as it is).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx

from conformance.backends.inductor.compiled import UNFUSED
from conformance.backends.inductor.seam import BOXED, ORIGINAL_BACKEND, seam
from conformance.backends.inductor.triage.ahead_of_time import AheadOfTime
from conformance.backends.inductor.triage.seam import seam as exporting
from conformance.backends.inductor.triage.steps import Steps
from conformance.errors import first_line, program_line
from conformance.graph_runner import GraphRunner
from conformance.triage.hold import Hold, Journal

Proceed = Callable[..., Any]
GRAPH_RUNGS = ("traced", "decomposed", "joint", "passed")  # a graph runs in place of the generated program
NO_PASSES = ("traced", "decomposed")
CALLED_DIRECTLY = ("unfused", "program")
WITHOUT_CACHES = (*CALLED_DIRECTLY, "uncached")
MANY_NODES = 5_000  # of larger graphs it is not written down what they call
OTHER_BACKENDS = "other backends"  # turned off: graphs for backends that are not held run as they were captured
SEVERAL = 2
RECOMPILES = 10_000  # compiled afresh at every call, a program would soon reach Dynamo's limit
# These change flags of the C++ compiler, with which torch would precompile its headers anew: that takes longer than a
# kernel without precompiled headers.
FLAG_SETTINGS = {
    "inductor.cpp.simdlen",
    "inductor.cpp.enable_floating_point_contract_flag",
    "inductor.cpp.enable_unsafe_math_opt_flag",
}
# What is being worked on while a function of the seam runs; for exceptions.
PHASES = {
    "compile_fx": "tracing by AOTAutograd",
    "pre_grad_passes": "passes before autograd",
    "joint_passes": "joint graph passes",
    "post_grad_passes": "post-grad passes",
    "lower": "lowering",
    "schedule": "code generation",
}


class Stop(BaseException):
    """Raised where lowering would begin: the graph runs instead. No handler of the compiler's takes it for a
    failure."""


@contextmanager
def holding(hold: Hold, journal: Journal) -> Iterator[None]:
    """Everything that is compiled inside is held."""
    holder = Holder(hold, journal)
    with ExitStack() as stack:
        for names, subscribers in ((seam, holder.subscribers()), (exporting, AheadOfTime(hold.rung).subscribers())):
            around = {key: function for key, function in subscribers.items() if names.has(key)}
            stack.enter_context(names.subscribe(**around))
        holder.apply_settings()
        if hold.rung == "eager":
            torch.compiler.set_stance("force_eager")
        yield


class Holder:
    """The subscribers to the seam that hold compiles."""

    def __init__(self, hold: Hold, journal: Journal) -> None:
        self.hold, self.journal, self.rung = hold, journal, hold.rung
        self.steps = Steps(hold, journal, lambda: self.graph)
        self.afresh = "guards" in hold.off  # every call is compiled afresh
        self.graph = -1  # number of the captured graph that is worked on
        self.depth: dict[str, int] = {}
        self.passed: fx.GraphModule | None = None
        self.calls = 0  # of compiled functions from outside of any; only the first are counted
        self._told: list[int] = []  # exceptions that were written down

    def subscribers(self) -> dict[str, Proceed]:
        own: dict[str, Proceed] = {
            "stance": self.stance,
            "call_backend": self.call_backend,
            "compile_fx": self.compile_fx,
            "pre_grad_passes": self.pre_grad_passes,
            "joint_passes": self.joint_passes,
            "post_grad_passes": self.post_grad_passes,
            "lower": self.lower,
            "schedule": self.schedule,
            "find_cached": self.find_cached,
            "run_program": self.run_program,
        }
        return own | self.steps.subscribers()

    def apply_settings(self) -> None:
        """The settings of the hold. Set again at every compile: the program may have set its own in between."""
        settings = dict(self.hold.settings)
        if self.rung in GRAPH_RUNGS or self.rung in WITHOUT_CACHES:
            settings |= {"inductor.force_disable_caches": True, "functorch.enable_autograd_cache": False}
        if self.rung == "unfused":
            settings |= {f"inductor.{name}": value for name, value in UNFUSED.items()}
        if FLAG_SETTINGS & settings.keys():
            settings["inductor.cpp_cache_precompile_headers"] = False
        if self.afresh:
            settings |= {f"dynamo.{name}": RECOMPILES for name in ("recompile_limit", "accumulated_recompile_limit")}
        roots = {"inductor": seam.config, "dynamo": seam.dynamo_config, "functorch": seam.functorch_config}
        for name, value in settings.items():
            root, *parents, last = name.split(".")
            owner = roots[root]
            for parent in parents:
                owner = getattr(owner, parent)
            if hasattr(owner, last):  # a version that has no such setting has nothing to turn off
                setattr(owner, last, value)

    # ------------------------------------------------------------------------------------------------ Dynamo

    def stance(self, proceed: Proceed, callback: Any) -> Any:
        """Asked at every call of something compiled: which callback sees its frames?"""
        if self.rung == "eager" and not _of_higher_order_op():
            return None
        if (self.afresh or self.calls < SEVERAL) and _outermost_call():
            if callback and self.calls < SEVERAL:  # not what only turns the compiler off
                self.calls += 1
                self.journal.write("call")
            if self.afresh:
                seam.reset_code_caches()
        return proceed(callback)

    def call_backend(self, proceed: Proceed, output: Any, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """Dynamo hands a graph to a backend, whichever it is."""
        self.graph += 1
        facts: dict[str, Any] = {"graph": self.graph, "backend": _backend_name(output), "nodes": len(gm.graph.nodes)}
        if facts["nodes"] <= MANY_NODES:
            facts["calls"] = _calls(gm)
        self.journal.write("graph", **facts)
        kept = output.compiler_fn
        if self.rung == "captured" or (OTHER_BACKENDS in self.hold.off and not is_held(facts["backend"])):
            output.compiler_fn = _as_captured
        try:
            with self._phase("backend"):
                return proceed(output, gm, *args, **kwargs)
        finally:
            output.compiler_fn = kept

    # ----------------------------------------------------------------------------------- AOTAutograd, Inductor

    def compile_fx(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        self.apply_settings()
        if self.depth.get("compile_fx") or seam.virtualized.aot_compilation or self.rung not in GRAPH_RUNGS:
            with self._phase("compile_fx"):
                return proceed(*args, **kwargs)
        bound = inspect.signature(proceed).bind(*args, **kwargs)
        inner = bound.arguments.get("inner_compile") or seam.compile_fx_inner
        bound.arguments["inner_compile"] = self._inner_compile(inner)
        if self.rung == "traced":
            bound.arguments["decompositions"] = {}
        with self._phase("compile_fx"):
            return proceed(*bound.args, **bound.kwargs)

    def _inner_compile(self, inner: Proceed) -> Proceed:
        def compile_graph(gm: fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
            if self.rung != "passed":
                return self._runner(gm)
            self.passed = None
            try:
                return inner(gm, example_inputs, **kwargs)
            except Stop:
                assert self.passed is not None
                return self._runner(self.passed)

        return compile_graph

    def _runner(self, gm: fx.GraphModule) -> Callable[[list[Any]], Any]:
        """The graph as a function that takes its inputs in a list, which it empties."""
        runner = Runner(gm, self.journal)

        def run(arguments: list[Any]) -> Any:
            values = list(arguments)
            arguments.clear()
            return runner.run(*values, enable_io_processing=False)

        setattr(run, BOXED, True)
        return run

    def pre_grad_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rung in NO_PASSES:
            return gm
        with self._phase("pre_grad_passes"):
            return proceed(gm, *args, **kwargs)

    def joint_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rung in NO_PASSES:
            return gm
        with self._phase("joint_passes"):
            return proceed(gm, *args, **kwargs)

    def post_grad_passes(self, proceed: Proceed, gm: Any, *args: Any, **kwargs: Any) -> Any:
        with self._phase("post_grad_passes") as outermost:
            result = proceed(gm, *args, **kwargs)
        if outermost:
            self.passed = gm
        return result

    def lower(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        if self.rung == "passed" and self.passed is not None:
            raise Stop
        with self._phase("lower"):
            return proceed(*args, **kwargs)

    def schedule(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        with self._phase("schedule"):
            return proceed(*args, **kwargs)

    def run_program(self, proceed: Proceed, program: Any, inputs: Any) -> Any:
        """A generated program is called."""
        if self.rung in CALLED_DIRECTLY and program.current_callable is not None:
            return program.current_callable(inputs)
        return proceed(program, inputs)

    def find_cached(self, proceed: Proceed, cls: Any, key: str, *args: Any, **kwargs: Any) -> Any:
        """A cache is asked for a key."""
        if self.rung in WITHOUT_CACHES or f"cache {cls.__name__}" in self.hold.off:
            return None, None, {"cache_status_detailed": "full_miss"}
        found = proceed(cls, key, *args, **kwargs)
        self.journal.write("cache", cache=cls.__name__, key=key, hit=found[0] is not None)
        return found

    # ------------------------------------------------------------------------------------------------ phases

    @contextmanager
    def _phase(self, key: str) -> Iterator[bool]:
        """Yields whether this is the outermost call of a function that calls itself. An exception is written down
        once, with the phase that it was raised in."""
        self.depth[key] = self.depth.get(key, 0) + 1
        try:
            yield self.depth[key] == 1
        except Exception as error:
            if id(error) not in self._told and "Restart" not in type(error).__name__:
                self._told.append(id(error))
                facts = {"graph": self.graph, "error": first_line(error), "target": lowered_target(error)}
                self.journal.write("raised", phase=PHASES.get(key, key), **facts)
            raise
        finally:
            self.depth[key] -= 1


class Runner(GraphRunner):
    """Tells the journal which node raised."""

    def __init__(self, gm: fx.GraphModule, journal: Journal) -> None:
        super().__init__(gm)
        self.journal = journal

    def run_node(self, node: fx.Node) -> Any:
        try:
            return super().run_node(node)
        except Exception as error:
            self.journal.write("runner", node=str(node), target=str(node.target), error=first_line(error))
            raise


# ------------------------------------------------------------------------------------------------- helpers


def lowered_target(error: Exception) -> str:
    """The op that was being lowered, as torch writes it below the message; "" where it does not."""
    found = re.search(r"^ *target: (\S+)", str(error), re.MULTILINE)
    return found[1] if found else ""


def _as_captured(gm: fx.GraphModule, example_inputs: Any) -> Any:
    """A backend that runs the graph as it is."""
    return gm.forward


def is_held(backend: str) -> bool:
    """Is what this backend does with Dynamo's graphs held at the rungs after capture?"""
    return backend == "inductor" or backend.startswith("aot_")


def _backend_name(output: Any) -> str:
    """The backend as the user named it."""
    function = output.compiler_fn
    function = getattr(function, ORIGINAL_BACKEND, function)
    name = getattr(function, "compiler_name", None) or getattr(function, "__name__", type(function).__name__)
    return str(name)


def _calls(gm: fx.GraphModule) -> list[tuple[str, str]]:
    """What a captured graph calls: target and arguments, and the line of the program that it stands for."""
    found = []
    for node in gm.graph.nodes:
        if node.op in ("call_function", "call_method", "call_module", "get_attr"):
            target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
            found.append((f"{target}{node.args}{node.kwargs or ''}", program_line(node.stack_trace or "")))
    return found


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_compiled_call(frame: Any) -> bool:
    return frame.f_code.co_name in ("compile_wrapper", "_fn") and frame.f_code.co_filename.endswith("eval_frame.py")


def _outermost_call() -> bool:
    """Is no other compiled function running further out?"""
    return sum(map(_is_compiled_call, _frames())) == 1


def _of_higher_order_op() -> bool:
    """torch's own control flow (`cond`, `while_loop`, `scan`) calls torch.compile in eager mode, too: that is left
    alone."""
    frames = _frames()
    caller = next((frame.f_back for frame in frames if _is_compiled_call(frame)), None)
    return caller is not None and "/_higher_order_ops/" in caller.f_code.co_filename
