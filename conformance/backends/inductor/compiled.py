"""One compile by Inductor, and what each stage of it showed."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from conformance import backends, graphs, oracle, scenario
from conformance.backends.base import Case, Compiled
from conformance.backends.inductor import blame, cache_stage, guard_probes
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.decompositions import decomposable
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.seam import seam, streams
from conformance.backends.inductor.watch import BREAK, Watch, nobody_listening, watching
from conformance.errors import CannotRun
from conformance.fresh import FRESH
from conformance.inputs import Tensor
from conformance.stage import Stage
from conformance.trace import Observation, digest
from conformance.verdict import Verdict

# Counters of Dynamo's `counters["inductor"]` that count rewrites, and the suite's word for what they count.
WORDS = {"fuse_attention": "attention"}
ADDMM = "aten.addmm.default"
RUNGS = {
    Stage.CAPTURE: "captured",
    Stage.DECOMPOSITION: "decomposed",
    Stage.POSTGRAD: "postgrad",
    Stage.CODEGEN: "generated",
}
# Nothing is fused. Lowering inlines too, so that it takes two settings; and it is compiled anew.
UNFUSED = {"max_fusion_size": 1, "realize_opcount_threshold": 0, "force_disable_caches": True}
BUSY = 100_000_000  # cycles of the GPU: about a twentieth of a second
CACHE_FOLDERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # Inductor sets the second itself, once for a process
NOT_MATCHES = re.compile(r"cache|bypass|extern_calls|async_compile|triton_bundler|benchmark|select_algorithm|cudagraph")
BEGINS = {  # the seam's function with which work on a stage begins
    "compile_fx": Stage.DECOMPOSITION,
    "joint_passes": Stage.POSTGRAD,
    "lower": Stage.FUSION,
    "define_kernel": Stage.CODEGEN,
    "run_program": Stage.RUNTIME,
}


def break_reason(payload: str) -> str:
    """Why a graph broke, in a line: as the trace says it, without where in the program and what Dynamo was about."""
    reason = payload.partition("Graph Break Reason: ")[2] or payload
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Encountered graph break"):
        lines = lines[1:]
    return lines[0] if lines else "no reason is given"


class InductorCompiled(Compiled):
    compiles_at_call = True
    programs: tuple[str, ...] = ("inductor_output_code",)  # as the structured trace names them

    def __init__(self, backend: InductorBackend, case: Case) -> None:
        self.backend, self.case, self.watch = backend, case, Watch()
        self._stack = ExitStack()
        self.module = case.module()
        self._snapshot: dict[str, Any] = {}
        self._crashed = False
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> None:
        self.backend.preload(self.case.target)
        FRESH.prepare()
        seam.reset()
        if seam.has("counters"):
            seam.counters.clear()
        if seam.has("metrics"):
            seam.metrics.reset()
        if seam.has("artifacts"):
            seam.artifacts.clear()  # those of earlier compiles in this process are no part of this one's bundle
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        self._stack.enter_context(empty_caches(self.folder))
        self._stack.enter_context(self.backend.settings(self.case))
        self._stack.enter_context(kernel_store())
        self._stack.enter_context(watching(self.watch))
        self._stack.enter_context(self._progress_told())
        self._fn = self._program(self.module)

    def _program(self, module: Any) -> Callable[..., Any]:
        return self.backend.program(self.case, module)

    @contextmanager
    def _progress_told(self) -> Iterator[None]:
        def teller(stage: Stage) -> Callable[..., Any]:
            def tell(proceed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
                self.progress(stage)
                return proceed(*args, **kwargs)

            return tell

        with seam.subscribe(**{key: teller(stage) for key, stage in BEGINS.items() if seam.has(key)}):
            yield

    # ----------------------------------------------------------------------------------------- calling

    def __call__(self, *inputs: Any) -> Any:
        return self._call("", inputs)

    def _call(self, rung: str, inputs: tuple[Any, ...]) -> Any:
        self.watch.rung = rung  # stays until the next call: a backward pass belongs to the call before it
        return self._fn(*self.backend.marked(self.case, inputs))

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        rung = RUNGS.get(stage)
        return None if rung is None else lambda *inputs: self._call(rung, inputs)

    @contextmanager
    def player(
        self, stage: Stage | None = None, *, unfused: bool = False, uncached: bool = False
    ) -> Iterator[tuple[Any, scenario.Run]]:
        """A new module, compiled anew. An earlier form of the program is played with caches turned off: what a cache serves was never
        handed from stage to stage."""
        self.watch.rung = RUNGS[stage] if stage is not None else ""
        settings = UNFUSED if unfused else {"force_disable_caches": True} if uncached or stage is not None else {}
        seam.reset()
        module = self.case.module()
        with seam.config.patch(settings):
            fn = self._program(module)
            run = scenario.Run(
                lambda *inputs, **options: fn(*self.backend.marked(self.case, inputs), **options),
                self.backend.compile_function(self.case),
                lambda play, *args: FRESH.call(elsewhere, play, args, self.backend.name, self._place(settings)),
                compiled=True,
            )
            yield module, run

    def _place(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a process must know to compile as this one does."""
        return {"folder": str(self.folder), "rung": self.watch.rung, "settings": dict(settings), "case": self.case}

    def plays_at(self, stage: Stage) -> bool:
        return stage in RUNGS or stage is Stage.CACHE

    def at_fault(self, stage: Stage, wrong: list[oracle.Difference], ref: oracle.Reference) -> Stage:
        return blame.around(self.watch, wrong, ref) if stage is Stage.DECOMPOSITION else stage

    def unfused(self) -> Callable[..., Any] | None:
        """Compiled once more, with nothing fused."""
        self.watch.rung = ""
        seam.reset()
        fn = self.backend.program(self.case, self.module)

        def call(*inputs: Any) -> Any:
            with seam.config.patch(UNFUSED):
                return fn(*self.backend.marked(self.case, inputs))

        return call

    def compiles(self) -> int:
        return self.watch.compiles

    def execution_contexts(self) -> Mapping[str, Callable[[], AbstractContextManager[Any]]]:
        if self.case.target.name != "cuda":
            return {}
        return {"on a side stream": _side_stream, "with inputs that arrive late": self._late_inputs}

    @contextmanager
    def _late_inputs(self) -> Iterator[None]:
        """The inputs get their values on the caller's stream when the program has long been launched: it must wait for them."""
        fn = self._fn

        def late(*inputs: Any) -> Any:
            with torch.no_grad():
                given = [x.detach() for x in inputs if isinstance(x, torch.Tensor) and x.is_cuda]
                own = [x for x in given if streams.internal_overlap(x) != 1]
                values = [x.clone() for x in own]
                for x in own:
                    x.zero_()
                streams.keep_busy(BUSY)
                for x, value in zip(own, values, strict=True):
                    x.copy_(value)
            return fn(*inputs)

        self._fn = late
        try:
            yield
        finally:
            self._fn = fn
            torch.cuda.synchronize()

    def blame(self, error: BaseException) -> Stage:
        self._crashed = True
        return blame.stage_of(error)

    def close(self) -> None:
        self._stack.close()

    # --------------------------------------------------------------------------------------- observing

    def _keep_counters(self) -> None:
        """They go on counting; what belongs to this compile is what they say now."""
        self._snapshot = {"compiles": self.watch.compiles}
        if seam.has("counters"):
            counters = seam.counters
            rewrites = {k: v for k, v in counters["inductor"].items() if not NOT_MATCHES.search(k)}
            # Not every break is counted: a branch on a tensor is not, nor a frame that is left to Python, nor (since 2.15) a size
            # that is known only at run time. Each is told in the trace.
            told = Counter(break_reason(payload) for payload in self.watch.payloads(BREAK))
            breaks = dict(counters["graph_break"]) or dict(told)
            self._snapshot |= {"breaks": breaks, "inductor": rewrites, "cache": cache_stage.counts()}
        if seam.has("metrics"):
            self._snapshot["ir_nodes"] = seam.metrics.ir_nodes_pre_fusion
            self._snapshot["vector"] = seam.metrics.generated_cpp_vec_kernel_count

    def observe(self, stage: Stage) -> Observation:
        if not self._snapshot:
            self._keep_counters()
        if silent := self.watch.silent_hooks(stage):
            if self._crashed:
                reason = f"the compile failed before it called {seam.shown(silent[0])}"
                return Observation.says(Verdict.UNAVAILABLE, reason)
            reason = f"torch {torch.__version__} compiled a program without calling {seam.shown(silent[0])}"
            return Observation.says(Verdict.UNAVAILABLE, f"{reason}: the suite does not know this version yet")
        return getattr(self, f"_{stage.value}")()

    def _capture(self) -> Observation:
        breaks = self._snapshot["breaks"]
        guard_texts = self.watch.payloads("dynamo_cpp_guards_str")
        facts: dict[str, Any] = {
            "graphs": self._snapshot["compiles"],
            "breaks": sum(breaks.values()),
            "break_reasons": sorted(reason.splitlines()[0][:160] for reason in breaks),
            "guards": guard_probes.guard_kinds(guard_texts),
            "ops": graphs.count_ops(self.watch.captured),
        }
        guards = [guard_probes.without_addresses(text) for text in guard_texts]
        texts = numbered("graph", [graphs.text(g) for g in self.watch.captured]) | numbered("guards", guards)
        return Observation(facts, texts)

    def recapture(self) -> dict[str, Any]:
        with nobody_listening():
            return guard_probes.probe(self.case)

    def _decomposition(self) -> Observation:
        found: list[Any] = list(self.watch.aot) or [g.decomposed for g in self.watch.graphs]
        facts = {
            "ops": graphs.count_ops(found),
            "composite": sorted({name for g in found for name in graphs.composite(g, seam.has_kernel)}),
            "writes": sorted({name for g in found for name in graphs.writes(g)}),
            "written_inputs": sum(graphs.written_inputs(g) for g in found),
            "without_metadata": sum(len(graphs.without_metadata(g)) for g in found),
            "decomposable": sorted({name for g in found for name in decomposable(g)}),
        }
        return Observation(facts, numbered("graph", [graphs.text(g) for g in found]))

    def _postgrad(self) -> Observation:
        before = [g.decomposed for g in self.watch.graphs]
        after = [g.postgrad for g in self.watch.graphs]
        ops, counters = graphs.count_ops(after), self._snapshot["inductor"]
        facts = {
            "ops": ops,
            "rewrites": dict(sorted(counters.items())),
            "matches": self._matches(counters),
            "rewritten": self._rewritten(graphs.count_ops(before), ops),
            "without_metadata": sum(len(graphs.without_metadata(g)) for g in after),
            "written_inputs_before": sum(graphs.written_inputs(g) for g in before),
            "written_inputs": sum(graphs.written_inputs(g) for g in after),
        }
        texts = numbered("graph before", [graphs.text(g) for g in before])
        texts |= numbered("graph after", [graphs.text(g) for g in after])
        return Observation(facts, texts)

    def _matches(self, counters: Mapping[str, int]) -> dict[str, int]:
        """By the suite's words. A contract may also ask for a counter by its own name."""
        asked = [name for name in self.case.micrograph.contract.postgrad.matches if name in WORDS]
        words = WORDS | {name: name for name in asked}
        return {word: int(counters.get(name, 0)) for name, word in words.items() if self._rewrites(WORDS[name])}

    def _rewritten(self, before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
        """Rewrites that have no counter, by the op that they leave. For a GPU Inductor takes an addmm of the user's apart."""
        if self.case.target.name != "cpu" and ADDMM in before:
            return {}
        return {"linear_bias": after.get(ADDMM, 0)}

    def _rewrites(self, word: str) -> bool:
        """A GPU's attention kernels use TF32, so that float32 is left alone where that is off: no match is promised then."""
        precise = getattr(torch.backends.cuda.matmul, "fp32_precision", "ieee") != "tf32"
        single = any(isinstance(spec, Tensor) and spec.dtype is torch.float32 for spec in self.case.micrograph.inputs)
        return not (word == "attention" and self.case.target.name != "cpu" and precise and single)

    def _fusion(self) -> Observation:
        groups = [group for g in self.watch.graphs for group in g.groups]
        externs = [name for g in self.watch.graphs for name in g.externs]
        facts = {
            "ir_nodes": self._snapshot["ir_nodes"],
            "kernels": len(groups),  # one C++ function may hold several groups of loops; the groups are what was fused
            "functions": sum(len(g.kernels) for g in self.watch.graphs),
            "library": sorted(externs),
            "largest_group": max((len(group) for group in groups), default=0),
        }
        costs = [g.cost for g in self.watch.graphs]
        if costs and all(costs):
            known = [cost for cost in costs if cost]
            facts |= {
                "bytes_moved": sum(cost.bytes for cost in known),
                "temporaries": sum(cost.temporaries for cost in known),
            }
            facts["peak_of_temporaries"] = max(cost.peak for cost in known)
        text = "\n".join(f"group {i}: {' '.join(group)}" for i, group in enumerate(groups))
        return Observation(facts, {"groups": text + "".join(f"\nlibrary: {name}" for name in externs)})

    def _sources(self) -> list[str]:
        return [_without_paths(source) for name in self.programs for source in self.watch.payloads(name)]

    def _codegen(self) -> Observation:
        sources = self._sources()
        facts = {
            **self._programs(sources),
            "vector_kernels": self._snapshot["vector"],
            "digest": digest("\n".join(sources)),
            "isa": _isa(),
        }
        kernels = {name: source for g in self.watch.graphs for name, source in g.kernels.items()}
        texts = numbered("program", sources) | {f"kernel {name}": source for name, source in kernels.items()}
        return Observation(facts, texts)

    def _programs(self, sources: list[str]) -> dict[str, Any]:
        """How many there are; none is right where nothing is left to compute."""
        return {"programs": len(sources)} | ({"nothing_left": True} if self.watch.emptied else {})

    def _runtime(self) -> Observation:
        facts: dict[str, Any] = {"calls": "compiled"}
        if self.case.micrograph.contract.runtime.random and not self.case.target.headless:
            from conformance.backends.inductor import random_draws

            facts["wrong_draws"] = FRESH.call(random_draws.probe, self.case.micrograph, self.case.target.name)
        return Observation(facts)

    def _cache(self) -> Observation:
        return cache_stage.CacheStage(self, self._snapshot["cache"], self._snapshot["compiles"]).observe()


def elsewhere(play: Callable[..., Any], args: tuple[Any, ...], backend_name: str, place: Mapping[str, Any]) -> Any:
    """In a fresh process that shares the caches: play a function, compiled in the same way."""
    backend: Any = backends.get(backend_name)
    case, watch = place["case"], Watch(rung=place["rung"])
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = place["folder"]

    def nothing(*inputs: Any) -> Any:
        raise CannotRun("elsewhere there is no module: compile what you call with run.compile")

    with backend.settings(case), seam.config.patch(place["settings"]), kernel_store(), watching(watch):
        run = scenario.Run(nothing, backend.compile_function(case), scenario.only_here(backend_name), compiled=True)
        return play(run, *args)


def _isa() -> str:
    return f"{platform.machine()} {seam.pick_vec_isa()}"


@contextmanager
def _side_stream() -> Iterator[None]:
    """With the usual stream kept busy, so that what was put there by mistake comes too late and is seen."""
    torch.cuda.synchronize()
    streams.keep_busy(BUSY)
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            yield
    finally:
        torch.cuda.synchronize()


@contextmanager
def empty_caches(folder: Path) -> Iterator[None]:
    """An empty cache: on disk by its folder, in memory by torch's own list of what to clear."""
    before = {name: os.environ.pop(name, None) for name in CACHE_FOLDERS}
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    seam.clear_caches()
    try:
        yield
    finally:
        seam.clear_caches()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def numbered(name: str, texts: list[str]) -> dict[str, str]:
    texts = [text for text in texts if text]
    return {name if len(texts) == 1 else f"{name} {index}": text for index, text in enumerate(texts)}


def _without_paths(source: str) -> str:
    """Where the file lies, and which compile of the process it was, is no part of what it says."""
    source = re.sub(r"^# AOT ID: .*$", "", source, flags=re.M)
    return re.sub(r"(?<=['\" ])/[^'\"\s]*?/(?=[\w.-]+['\"\s])", "…/", source)
