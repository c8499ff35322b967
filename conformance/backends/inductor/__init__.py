"""TorchInductor: all seven stages from one plain `torch.compile`."""

from __future__ import annotations

import copy
import inspect
import json
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from conformance import graphs, oracle
from conformance.backends.base import Backend, Case, Compiled, nowhere
from conformance.backends.inductor import blame, caches, guards
from conformance.backends.inductor.hooks import Watch, changed_constant, decomposable, watching
from conformance.backends.inductor.hotload import HOTLOAD
from conformance.headless import unavailable as not_described
from conformance.micrograph import Tensor
from conformance.stage import Stage
from conformance.target import DEVICES, Target
from conformance.trace import Observation, digest
from conformance.verdict import Verdict

# Counters of `torch._dynamo.utils.counters["inductor"]` that count rewrites, and the suite's word for what they count.
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


class InductorBackend(Backend):
    name = "inductor"

    def versions(self) -> dict[str, str]:
        found = {"torch": str(torch.__version__)}
        try:
            import triton

            found["triton"] = triton.__version__
        except ImportError:
            pass
        return found

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda", *DEVICES)

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if target.name == "cuda" and not torch.cuda.is_available():
            return nowhere("needs a CUDA device; use a headless target such as sm_90 here")
        if target.headless:
            return nowhere(reason) if (reason := not_described(target)) else {}
        if not _has_cpp_compiler():
            return nowhere("needs a C++ compiler: install g++ (Debian: apt-get install g++)")
        return {}

    def compile(self, case: Case) -> Compiled:
        if case.target.headless:
            from conformance.backends.inductor.headless import HeadlessCompiled

            return HeadlessCompiled(self, case)
        return InductorCompiled(self, case)

    def eager(self, case: Case, module: Any) -> Callable[..., Any]:
        if case.target.headless:
            from conformance.backends.inductor.headless import runs_in_eager

            return self._program(case, module, compiled=False) if runs_in_eager(case.micrograph, case.target) else module  # type: ignore[arg-type]
        return module

    def program(self, case: Case, module: Any) -> Callable[..., Any]:
        """The compiled module, called with the tensors of `case.inputs()`."""
        return self._program(case, module) if case.target.headless else self.front_door(module)

    @staticmethod
    def _program(case: Case, module: Any, compiled: bool = True) -> Callable[..., Any]:
        from conformance.headless.program import Program

        return Program(module, case.target, compiled)

    # What every process that compiles the same case has to agree on.

    @staticmethod
    def front_door(module: Any) -> Callable[..., Any]:
        return torch.compile(module)

    @staticmethod
    @contextmanager
    def settings(case: Case) -> Iterator[None]:
        with ExitStack() as stack:
            if case.micrograph.contract.runtime.random:
                # The only way to draw the same numbers as eager: let eager's own ops draw them.
                stack.enter_context(torch._inductor.config.patch(fallback_random=True))
            if case.target.name != "cpu":
                # Whether a matmul is padded is decided by a stopwatch: the same program would not be made twice.
                stack.enter_context(torch._inductor.config.patch(shape_padding=False))
            yield

    @staticmethod
    def marked(case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        capture = case.micrograph.contract.capture
        if capture.dynamic or capture.unbacked:
            for spec, value in zip(case.micrograph.inputs, inputs, strict=True):
                if isinstance(spec, Tensor):
                    for index, name in enumerate(spec.names()):
                        names = set(re.findall(r"[a-z]\w*", name))
                        if names & {*capture.unbacked}:
                            torch._dynamo.decorators.mark_unbacked(value, index)
                        elif names & {*capture.dynamic} and value.shape[index] > 1:
                            torch._dynamo.mark_dynamic(value, index)
        return inputs


def _has_cpp_compiler() -> bool:
    from shutil import which

    return any(which(name) for name in (os.environ.get("CXX") or "g++", "g++", "clang++", "c++"))


class InductorCompiled(Compiled):
    programs: tuple[str, ...] = ("inductor_output_code",)  # as the structured trace names them

    def __init__(self, backend: InductorBackend, case: Case) -> None:
        self.backend, self.case, self.watch = backend, case, Watch()
        self._stack = ExitStack()
        self.module = case.module()
        self._snapshot: dict[str, Any] = {}
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise

    def _open(self) -> None:
        _warm_up(cpp=not self.case.target.headless)
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch._inductor.metrics.reset()
        caches.forget_artifacts()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        self._stack.enter_context(_cache_in(self.folder))
        self._stack.enter_context(self.backend.settings(self.case))
        self._stack.enter_context(watching(self.watch))
        self._fn = self.backend.program(self.case, self.module)

    # ----------------------------------------------------------------------------------------- calling

    def __call__(self, *inputs: Any) -> Any:
        return self._call("", inputs)

    def _call(self, rung: str, inputs: tuple[Any, ...]) -> Any:
        self.watch.rung = rung  # stays until the next call: a backward pass belongs to the call before it
        return self._fn(*self.backend.marked(self.case, inputs))

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        rung = RUNGS.get(stage)
        return None if rung is None else lambda *inputs: self._call(rung, inputs)

    def at_fault(self, stage: Stage, wrong: list[oracle.Difference], ref: oracle.Reference) -> Stage:
        return blame.around(self.watch, wrong, ref) if stage is Stage.DECOMPOSITION else stage

    def unfused(self) -> Callable[..., Any] | None:
        """Compiled once more, with nothing fused."""
        self.watch.rung = ""
        torch._dynamo.reset()
        fn = self.backend.program(self.case, self.module)

        def call(*inputs: Any) -> Any:
            with torch._inductor.config.patch(UNFUSED):
                return fn(*self.backend.marked(self.case, inputs))

        return call

    def compiles(self) -> int:
        return self.watch.compiles

    def ways(self) -> Mapping[str, Callable[[], AbstractContextManager[Any]]]:
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
                own = [x for x in given if torch._debug_has_internal_overlap(x) != 1]
                values = [x.clone() for x in own]
                for x in own:
                    x.zero_()
                torch.cuda._sleep(BUSY)
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
        return blame.stage_of(error)

    def close(self) -> None:
        self._stack.close()

    # --------------------------------------------------------------------------------------- observing

    def _keep_counters(self) -> None:
        """They go on counting; what belongs to this compile is what they say now."""
        counters = torch._dynamo.utils.counters
        metrics = torch._inductor.metrics
        self._snapshot = {
            "compiles": self.watch.compiles,
            "breaks": dict(counters["graph_break"]),
            "inductor": {k: v for k, v in counters["inductor"].items() if not NOT_MATCHES.search(k)},
            "cache": caches.counts(),
            "ir_nodes": metrics.ir_nodes_pre_fusion,
            "vector": metrics.generated_cpp_vec_kernel_count,
        }

    def observe(self, stage: Stage) -> Observation:
        if not self._snapshot:
            self._keep_counters()
        return getattr(self, f"_{stage.value}")()

    def _capture(self) -> Observation:
        breaks = self._snapshot["breaks"]
        guard_texts = self.watch.payloads("dynamo_cpp_guards_str")
        facts = {
            "graphs": self._snapshot["compiles"],
            "breaks": sum(breaks.values()),
            "break_reasons": sorted(reason.splitlines()[0][:160] for reason in breaks),
            "guards": guards.guard_kinds(guard_texts),
            "ops": _counted(self.watch.captured),
        }
        texts = _numbered("graph", [graphs.text(g) for g in self.watch.captured]) | _numbered("guards", guard_texts)
        return Observation(facts, texts, live={"graphs": self.watch.captured})

    def recapture(self) -> dict[str, Any]:
        return guards.probe(self.case)

    def _decomposition(self) -> Observation:
        found: list[Any] = list(self.watch.aot) or [g.decomposed for g in self.watch.graphs]
        facts = {
            "ops": _counted(found),
            "composite": sorted({name for g in found for name in graphs.composite(g)}),
            "writes": sorted({name for g in found for name in graphs.writes(g)}),
            "written_inputs": sum(graphs.written_inputs(g) for g in found),
            "without_metadata": sum(len(graphs.without_metadata(g)) for g in found),
            "decomposable": sorted({name for g in found for name in decomposable(g)}),
        }
        return Observation(facts, _numbered("graph", [graphs.text(g) for g in found]), live={"graphs": found})

    def _postgrad(self) -> Observation:
        before = [g.decomposed for g in self.watch.graphs]
        after = [g.postgrad for g in self.watch.graphs]
        ops, counters = _counted(after), self._snapshot["inductor"]
        facts = {
            "ops": ops,
            "rewrites": dict(sorted(counters.items())),
            "matches": {word: int(counters.get(name, 0)) for name, word in WORDS.items() if self._rewrites(word)},
            "rewritten": self._rewritten(_counted(before), ops),
            "without_metadata": sum(len(graphs.without_metadata(g)) for g in after),
            "written_inputs_before": sum(graphs.written_inputs(g) for g in before),
            "written_inputs": sum(graphs.written_inputs(g) for g in after),
        }
        texts = _numbered("graph before", [graphs.text(g) for g in before])
        texts |= _numbered("graph after", [graphs.text(g) for g in after])
        return Observation(facts, texts, live={"before": before, "after": after})

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
        text = "\n".join(f"group {i}: {' '.join(group)}" for i, group in enumerate(groups))
        return Observation(facts, {"groups": text + "".join(f"\nlibrary: {name}" for name in externs)})

    def _sources(self) -> list[str]:
        return [_without_paths(source) for name in self.programs for source in self.watch.payloads(name)]

    def _codegen(self) -> Observation:
        sources = self._sources()
        facts = {
            "programs": len(sources),
            "vector_kernels": self._snapshot["vector"],
            "digest": digest("\n".join(sources)),
            "isa": _isa(),
        }
        kernels = {name: source for g in self.watch.graphs for name, source in g.kernels.items()}
        texts = _numbered("program", sources) | {f"kernel {name}": source for name, source in kernels.items()}
        return Observation(facts, texts, live={"sources": sources, "kernels": kernels})

    def _runtime(self) -> Observation:
        return Observation({"calls": "compiled"})

    def _cache(self) -> Observation:
        """Declared state: fresh at the first compile. `facts` says what each further attempt found."""
        facts: dict[str, Any] = {"first": caches.nonzero(self._snapshot["cache"])}
        if facts["first"].get("fx_bypass") or facts["first"].get("aot_bypass"):
            promised = self.case.micrograph.contract.cache.cacheable
            verdict = Verdict.FALLBACK if promised else Verdict.UNSUPPORTED
            return Observation(facts, verdict=verdict, reason=f"the cache was bypassed: {self._bypass_reason()}")
        artifacts = torch.compiler.save_cache_artifacts()
        if self.case.target.name == "cuda" and any(g.kernels for g in self.watch.graphs):
            facts["cubins"] = sum(1 for _ in self.folder.rglob("*.cubin"))
        differs: dict[str, str] = {}
        for name, probe in self._cache_probes():
            facts[name], wrong = probe()
            differs |= {name: wrong} if wrong else {}
        facts["fresh_process"], wrong = self._hot_load(artifacts)
        differs |= {"fresh_process": wrong} if wrong else {}
        return Observation(facts | {"differs": differs})

    def _bypass_reason(self) -> str:
        for name, _, payload in self.watch.events:
            if "bypass" in name:
                try:
                    return str(json.loads(payload)["cache_bypass_reason"]).splitlines()[0][:200]
                except (ValueError, KeyError, IndexError):
                    continue
        return "torch does not say why"

    def _cache_probes(self) -> Iterator[tuple[str, Callable[[], tuple[dict[str, int], str]]]]:
        case, steps = self.case, self.case.micrograph.steps
        module = case.module()
        ref = self._reference()

        def call(inputs: tuple[Any, ...] | None = None) -> oracle.Outcome:
            fn = self.backend.program(case, module)
            given = case.inputs(0) if inputs is None else inputs
            return oracle.run(lambda *x: fn(*self.backend.marked(case, x)), given, module, calls=steps)

        self.watch.rung = ""
        yield "again", lambda: caches.again(call, ref)
        yield "changed_config", lambda: caches.misses(call, caches.CHANGED)
        if self._snapshot["compiles"] == 1 and changed_constant(copy.deepcopy(self.watch.captured[0])):  # by now it holds more
            yield "changed_constant", lambda: self._altered(lambda: caches.misses(call, {}))
        static = [d for d in case.micrograph.contract.capture.recompiles if d not in case.micrograph.contract.capture.dynamic]
        if static:
            size = guards.sizes_to_probe(case.micrograph.dims[static[0]])[0]
            yield "changed_input", lambda: caches.misses(lambda: call(case.inputs(0, **{static[0]: size})), {})
        if self._snapshot["compiles"] == 1:
            for what, inputs in self._other_kinds(module):
                yield what, lambda inputs=inputs: caches.misses(lambda: call(inputs), {})  # type: ignore[misc]

    def _other_kinds(self, module: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The same values in another dtype, and with other strides."""
        for what, inputs, must in guards.changes(self.case, self.case.inputs(0)):
            if must and oracle.run(module, oracle.clone_inputs(inputs), module).error is None:
                yield "changed_strides" if "strides" in what else "changed_dtype", inputs

    def _altered(self, probe: Callable[[], Any]) -> Any:
        """The same program with another number in it."""
        self.watch.alter = changed_constant
        try:
            return probe()
        finally:
            self.watch.alter = None

    def _hot_load(self, artifacts: Any) -> tuple[dict[str, int], str]:
        """In a process that has compiled nothing."""
        if not artifacts or not artifacts[0]:
            return {}, "save_cache_artifacts() gave nothing"
        caches.keep_only_kernels(self.folder)
        (self.folder / "artifacts").write_bytes(artifacts[0])
        answer = self.folder / "answer.pt"
        said = HOTLOAD.ask(
            {
                "file": inspect.getfile(self.case.micrograph),
                "name": self.case.micrograph.name(),
                "target": self.case.target.name,
                "backend": self.backend.name,
                "cache": str(self.folder),
                "artifacts": str(self.folder / "artifacts"),
                "answer": str(answer),
            }
        )
        if "timeout" in said:
            raise TimeoutError(said["timeout"])
        if "error" in said:
            return {}, said["error"]
        return caches.nonzero(said["counts"]), self._differs_here(torch.load(answer, weights_only=True))

    def _differs_here(self, got: dict[str, Any]) -> str:
        """Outputs, and what the call left in inputs and buffers."""
        ref = self._reference()
        want = ref.eager.outputs
        if len(got["outputs"]) != len(want):
            return f"{len(got['outputs'])} outputs, eager returns {len(want)}"
        named = {f"output {index}": value for index, value in enumerate(got["outputs"])} | got["inputs"] | got["state"]
        eager, exact = _named(ref.eager), _named(ref.exact) if ref.exact else {}
        for name, value in named.items():
            for difference in oracle.value_differences(name, value, eager.get(name), exact.get(name)):
                return str(difference)
        return ""

    def _reference(self) -> oracle.Reference:
        random = self.case.micrograph.contract.runtime.random
        module = self.case.module()
        fn = self.backend.eager(self.case, module)
        return oracle.reference(module, self.case.inputs(0), random=random, calls=self.case.micrograph.steps, fn=fn)


# --------------------------------------------------------------------------------------------- helpers


def _named(outcome: oracle.Outcome) -> dict[str, Any]:
    """Everything that a call left behind, by name."""
    return {f"output {index}": value for index, value in enumerate(outcome.outputs)} | outcome.inputs | outcome.state


_warm = False


def _warm_up(cpp: bool) -> None:
    """Ask once, in a folder that outlives this process, what the C++ compiler can do: it takes seconds to find out."""
    global _warm
    import torch._dynamo.utils
    import torch._inductor.compile_fx
    import torch._inductor.metrics  # noqa: F401
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    HOTLOAD.soon()
    if cpp and not _warm:
        bool(pick_vec_isa())  # its truth is what is asked of the C++ compiler
        _warm = True


def _isa() -> str:
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    return f"{platform.machine()} {pick_vec_isa()}"


@contextmanager
def _side_stream() -> Iterator[None]:
    """With the usual stream kept busy, so that what was put there by mistake comes too late and is seen."""
    torch.cuda.synchronize()
    torch.cuda._sleep(BUSY)
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            yield
    finally:
        torch.cuda.synchronize()


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """An empty cache: on disk by its folder, in memory by torch's own list of what to clear."""
    from torch._inductor.utils import clear_caches

    before = {name: os.environ.pop(name, None) for name in CACHE_FOLDERS}
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    clear_caches()
    try:
        yield
    finally:
        clear_caches()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _counted(found: list[Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for gm in found:
        for name, count in graphs.ops(gm).items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))


def _numbered(name: str, texts: list[str]) -> dict[str, str]:
    texts = [text for text in texts if text]
    return {name if len(texts) == 1 else f"{name} {index}": text for index, text in enumerate(texts)}


def _without_paths(source: str) -> str:
    """Where the file lies, and which compile of the process it was, is no part of what it says."""
    source = re.sub(r"^# AOT ID: .*$", "", source, flags=re.M)
    return re.sub(r"(?<=['\" ])/[^'\"\s]*?/(?=[\w.-]+['\"\s])", "…/", source)
