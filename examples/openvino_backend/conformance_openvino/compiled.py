"""One compile by OpenVINO: called as a user calls it, then asked what each stage showed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from conformance import scenario
from conformance.backends.base import Case, Compiled
from conformance.backends.inductor import guard_probes
from conformance.errors import CannotRun
from conformance.stage import Stage
from conformance.trace import Observation
from conformance_openvino import model_cache, observers
from conformance_openvino.seam import seam
from conformance_openvino.watch import Watch, forget, watching

if TYPE_CHECKING:
    from conformance_openvino.backend import OpenVINOBackend

# The forms of the program that can be run in place of it: as captured, as ATen ops, partitioned with every partition run by torch,
# and partitioned with OpenVINO's models called in the plain way. Right as models and wrong as a program: the executor is at fault.
RUNGS = (Stage.CAPTURE, Stage.DECOMPOSITION, Stage.FUSION, Stage.CODEGEN)


class OpenVINOCompiled(Compiled):
    compiles_at_call = True

    def __init__(self, backend: OpenVINOBackend, case: Case) -> None:
        self.backend, self.case = backend, case
        self.watch = Watch(progress=lambda stage: self.progress(stage))
        self.module = case.module()
        backend.preload(case.target)
        forget()
        seam.counters.clear()
        self._stack = ExitStack()
        self._stack.enter_context(backend.settings(case))
        self._stack.enter_context(watching(self.watch))
        self._fn = backend.compile_entry(self.module, **case.micrograph.options)
        self._first: observers.Snapshot | None = None

    def __call__(self, *inputs: Any) -> Any:
        return self._call(None, inputs)

    def _call(self, rung: Stage | None, inputs: tuple[Any, ...]) -> Any:
        self.watch.rung = rung  # stays until the next call: a backward pass belongs to the call before it
        return self._fn(*self.backend.marked(self.case, inputs))

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        return (lambda *inputs: self._call(stage, inputs)) if stage in RUNGS else None

    @contextmanager
    def player(
        self, stage: Stage | None = None, *, unfused: bool = False, uncached: bool = False
    ) -> Iterator[tuple[Any, scenario.Run]]:
        if unfused or uncached:
            raise CannotRun("OpenVINO cannot be told to compile without fusing")
        forget()
        self.watch.rung = stage
        module, backend = self.case.module(), self.backend
        fn = backend.compile_entry(module, **self.case.micrograph.options)
        call = lambda *inputs, **options: fn(*backend.marked(self.case, inputs), **options)
        yield module, scenario.Run(call, backend.compile_entry, scenario.only_here(backend.name), compiled=True)

    def compiles(self) -> int:
        return len(self.watch.graphs)

    def recapture(self) -> dict[str, Any]:
        """The front end is Dynamo, whatever compiles the graph: the suite's own probes of it."""
        return guard_probes.probe(self.case)

    def afterwards(self) -> dict[str, Any]:
        """Partitions that ran in OpenVINO at the first call, and that torch computes now."""
        taken = observers.taken(self.watch)
        given_up = sorted(p.error for p in taken if p.calls and p.error)
        return {"given_up": given_up} if given_up else {}

    def blame(self, error: BaseException) -> Stage:
        """Dynamo checks its guards last, and finds those there that tracing to ATen ops has added."""
        if "Guard failed on the same frame" in str(error):
            return Stage.DECOMPOSITION
        dynamo = type(error).__module__.startswith("torch._dynamo")
        return self.watch.reached if dynamo or self.watch.reached is Stage.CAPTURE else Stage.RUNTIME

    def close(self) -> None:
        self._stack.close()
        forget()

    def observe(self, stage: Stage) -> Observation:
        if self._first is None:
            self._first = observers.Snapshot.of(self.watch)
        if stage is Stage.CACHE:
            return model_cache.observe(self.backend, self.case)
        observer: Callable[[observers.Snapshot], Observation] = getattr(observers, stage.value)
        return observer(self._first)
