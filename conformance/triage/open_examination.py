"""One compile, looked at as the suite does, and kept open for what comes after: the culprit is read off the same compile.

And compiles that do less than a whole one, for the reducer's many questions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Backend, Case, Compiled
from conformance.backends.inductor.compiled import UNFUSED, empty_caches
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.seam import seam
from conformance.backends.inductor.triage.evidence import Evidence, keeping
from conformance.backends.inductor.watch import poisoned
from conformance.checks.measured import LADDER
from conformance.examine import Examination, Stop
from conformance.stage import STAGES, Stage
from conformance.target import CPU, Target
from conformance.trace import Observation
from conformance.triage.micrograph_subject import wrap
from conformance.verdict import Finding, Kind


class Held(Examination):
    """Whether fusion or code generation is at fault is left open (`undecided`): to compile everything once more with nothing
    fused is the dearest way to find out.

    With `early` the graphs that the compiler makes on its way are looked at first. If one of them differs from eager, no kernel is
    built: that the program itself is wrong is then left to be `confirmed`, here or on a smaller graph."""

    def __init__(
        self, case: Case, backend: Backend, stages: Collection[Stage], stop: Stop, early: bool = False
    ) -> None:
        super().__init__(case, backend, stages, stop)
        self.early = early
        self.evidence = Evidence()
        self.compiled: Any = None
        self.first_call = False  # the finding is of the first call, and nothing was disturbed since
        self.undecided: oracle.Reference | None = None
        self.ref: Any = None
        self._keeping = ExitStack()

    def _opened(self) -> Compiled:
        self._keeping.enter_context(keeping(self.evidence))
        self.compiled = super()._opened()
        return self.compiled

    def _shut(self, compiled: Compiled) -> None:
        self._keeping.close()

    def close(self) -> None:
        if self.compiled is not None:
            self.compiled.close()

    def _look(self, compiled: Compiled) -> None:
        self._compiled_module = compiled.module
        if self.early:
            self.ref = self.reference(0)
            with unbuilt():
                at, found = _first_graph(self, compiled, self.ref)
            crashed = any(difference.kind is Kind.CRASH for difference in found)
            self.early = bool(found) and not crashed
            compiled = self._anew() if crashed else compiled
        if not self.early:
            super()._look(compiled)
            return
        for stage in STAGES[: Stage.RUNTIME.order]:
            self._observe(compiled, stage)
        self.first_call = True
        self.found[at].findings += [Finding(d.kind, LADDER, f"first call: {d}") for d in found[:3]]

    def _anew(self) -> Compiled:
        """Nothing was compiled, but a graph was captured: that must not count."""
        self.close()
        self._keeping.close()
        self.evidence = Evidence()
        return self._opened()

    def confirmed(self) -> bool:
        return not self.early or bool(oracle.compare(self.call(self.compiled, 0), self.ref))

    def _observe(self, compiled: Compiled, stage: Stage) -> None:
        self._keeping.close()  # by now the first call is over: what later calls compile is not asked for
        super()._observe(compiled, stage)

    def differs(
        self, compiled: Compiled, seed: int, outcome: Any, ref: Any, when: str, *args: Any, **sizes: Any
    ) -> bool:
        found = super().differs(compiled, seed, outcome, ref, when, *args, **sizes)
        self.first_call |= found and when == "first call"
        return found

    def _right_unfused(self, compiled: Compiled, seed: int, ref: oracle.Reference, **sizes: int) -> bool:
        if seed or sizes:
            return super()._right_unfused(compiled, seed, ref, **sizes)
        self.undecided = ref
        return False

    def right_unfused(self) -> bool:
        """The dear way."""
        assert self.undecided is not None
        return super()._right_unfused(self.compiled, 0, self.undecided)

    def blame_fusion(self) -> None:
        """What was found in the generated program is fusion's."""
        seen = self.found.observations[Stage.CODEGEN]
        self.found.observations.setdefault(Stage.FUSION, Observation()).findings += seen.findings
        seen.findings = []


class Rungs(Examination):
    """Only the graphs that the compiler makes on its way: no kernel is built."""

    def _look(self, compiled: Compiled) -> None:
        self._compiled_module = compiled.module
        with unbuilt():
            at, found = _first_graph(self, compiled, self.reference(0))
        self.found.observations[at] = Observation(findings=[Finding(d.kind, LADDER, str(d)) for d in found[:3]])


def _first_graph(look: Examination, compiled: Compiled, ref: oracle.Reference) -> tuple[Stage, list[oracle.Difference]]:
    """The first of the compiler's graphs that does not compute what eager computes."""
    for stage in (Stage.CAPTURE, Stage.DECOMPOSITION, Stage.POSTGRAD):
        program = compiled.at(stage)
        found = oracle.compare(look.call(program, 0), ref, strides=False) if program is not None else []
        if found:
            return compiled.at_fault(stage, found, ref), found
    return Stage.POSTGRAD, []


class Unsettled(Examination):
    """Fusion and code generation are not told apart: both are called code generation."""

    def _right_unfused(self, compiled: Compiled, seed: int, ref: oracle.Reference, **sizes: int) -> bool:
        return False


@contextmanager
def unbuilt() -> Iterator[None]:
    """C++ kernels go to the C++ compiler when the program first calls one, and not before."""

    def cpp_pybinding(
        original: Callable[..., Any], self: Any, argtypes: list[str], source_code: str
    ) -> Callable[..., Any]:
        built: list[Any] = []

        def kernel(*args: Any) -> Any:
            if not built:
                made = original(self, argtypes, source_code)
                built.append(made.result() if hasattr(made, "result") else made)
            return built[0](*args)

        return kernel

    with seam.subscribe(build_cpp_kernel=cpp_pybinding):
        yield


def side_by_side(gm: torch.fx.GraphModule, inputs: tuple[Any, ...], fused: bool) -> Any:
    """What a graph gives, compiled."""
    seam.reset()
    with torch.no_grad(), seam.config.patch({"force_disable_caches": True} if fused else UNFUSED), poisoned():
        return torch.compile(gm)(*oracle.clone_inputs(inputs))


def right_with_nothing_fused(gm: torch.fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
    ref = oracle.reference(gm, inputs)
    seam.reset()
    with seam.config.patch(UNFUSED), poisoned():
        return not oracle.compare(oracle.run(torch.compile(gm), oracle.clone_inputs(inputs), gm), ref)


@contextmanager
def scratch(backend: Backend) -> Iterator[None]:
    """Caches of its own for as long as triage takes; the fresh process of the cache stage is started only if it comes to that."""
    backend.preload(CPU)  # what the machine can do is asked in a folder that lasts
    with (
        tempfile.TemporaryDirectory(prefix="conformance-triage-") as folder,
        empty_caches(Path(folder)),
        kernel_store(),
    ):
        yield


def signature(
    backend: Any,
    gm: torch.fx.GraphModule,
    inputs: tuple[Any, ...],
    target: str,
    wanted: Stage,
    look: type[Examination] = Examination,
) -> tuple[Stage, str] | None:
    """The stage and kind of the first finding of a graph; None where nothing is wrong. Cheaper than the whole suite: one
    compile, one call, and the ladder only if that differs. Only where capture is at fault is it captured again and again."""
    try:
        cls = wrap(gm, inputs, "reduced")
    except Exception:
        return None
    stages = STAGES[0 if wanted is Stage.CAPTURE else 1 : Stage.RUNTIME.order]
    examination = look(Case(cls, Target.parse(target)), backend, stages)
    try:
        trace = examination.trace()
    except Exception:
        return None
    for stage in STAGES:
        seen = trace.observations.get(stage)
        if seen is not None and seen.findings:
            return stage, seen.findings[0].kind.value
    return None
