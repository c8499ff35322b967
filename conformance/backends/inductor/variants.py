"""Other ways through Inductor: recorded CUDA graphs, compiled autograd, ahead of time. Each is a backend of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Case, Compiled, all_unavailable
from conformance.backends.inductor import seam as seams
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.compiled import InductorCompiled
from conformance.backends.inductor.seam import seam
from conformance.checks.measured import BACKWARD_CAPTURED
from conformance.inputs import Tensor
from conformance.replay import IN_A_ROW, REPLAYS
from conformance.seam import Seam
from conformance.stage import Stage
from conformance.target import Target
from conformance.torch_seam import pytree
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

MANY = 1000


# ----------------------------------------------------------------------------------------- CUDA graphs


def _entry_with_mode(mode: str) -> tuple[str, str]:
    return "compiled", f'def compiled(module):\n    return torch.compile(module, mode="{mode}")\n'


class CudagraphsBackend(InductorBackend):
    """`mode="reduce-overhead"`: what runs from the third call on is a recording."""

    name = "inductor_cudagraphs"
    default_target = "cuda"
    variant_of = "inductor"

    def seams(self) -> tuple[Seam, ...]:
        return (seam, seams.cudagraphs)

    def targets(self) -> tuple[str, ...]:
        return ("cuda",)

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if not torch.cuda.is_available():
            return all_unavailable("needs a CUDA device")
        return {**super().unavailable(target), Stage.CACHE: "the same caches as inductor's: observed there"}

    def compile(self, case: Case) -> Compiled:
        return CudagraphsCompiled(self, case)

    def compile_entry(self, module: Any, **options: Any) -> Callable[..., Any]:
        return torch.compile(module, mode="reduce-overhead", **options)

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        return _entry_with_mode("reduce-overhead")


class CudagraphsCompiled(InductorCompiled):
    outputs_persist = False  # documented: the next replay writes into the same memory
    replays = REPLAYS

    def _open(self) -> None:
        self.skips: list[str] = []
        self._stack.enter_context(self._skips_heard())
        super()._open()

    @contextmanager
    def _skips_heard(self) -> Iterator[None]:
        def heard(proceed: Callable[..., Any], message: str, *args: Any, **kwargs: Any) -> Any:
            self.skips.append(str(message).splitlines()[0][:200])
            return proceed(message, *args, **kwargs)

        table = seams.cudagraphs
        with table.subscribe(**{key: heard for key in table.names if key.startswith("skip") and table.has(key)}):
            yield

    def __call__(self, *inputs: Any) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return super().__call__(*inputs)

    def next_call(self, *inputs: Any) -> Any:
        return super().__call__(*inputs)

    def recapture(self) -> dict[str, Any]:
        return {}  # the front end is inductor's

    def _runtime(self) -> Observation:
        skipped = self.skips or (seam.counters["inductor"]["cudagraph_skips"] and ["no reason given"])
        if skipped:
            facts = {"skipped": list(dict.fromkeys(skipped))}
            return Observation(
                facts, verdict=Verdict.FALLBACK, reason=f"no CUDA graph was recorded: {facts['skipped'][0]}"
            )
        return Observation({"calls": "replayed"})

    def afterwards(self) -> dict[str, Any]:
        """Is it really a recording that runs, and does it hold on to memory?"""
        facts: dict[str, Any] = {"recordings": self._recordings()}
        inputs = self.case.inputs(0)
        wants_grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        if wants_grad:
            return facts
        with torch.no_grad():
            with oracle.state_kept(self.module):
                facts["silently_overwritten"] = self._silently_overwritten()
            self._again(3, inputs)
            before = torch.cuda.memory_allocated()
            self._again(MANY, inputs)
        facts["grew_by"] = torch.cuda.memory_allocated() - before
        return facts

    def _again(self, times: int, inputs: tuple[Any, ...]) -> None:
        """As often, but never further than the micrograph's own steps lead: a cache has an end."""
        steps = self.case.micrograph.steps
        for _ in range(times // steps):
            with oracle.state_kept(self.module):
                for _ in range(steps):
                    self(*inputs)
        torch.cuda.synchronize()

    def _silently_overwritten(self) -> list[str]:
        """Several calls in one step: what the first gave must stay, or say when it is read that it did not. (In a new step the same
        tensors are given again, as documented.)"""
        outputs = [x for x in pytree.tree_leaves(self(*self.case.inputs(0))) if isinstance(x, torch.Tensor)]
        before = [x.clone() for x in outputs]
        for seed in range(1, IN_A_ROW):
            self.next_call(*self.case.inputs(seed))
        found = []
        for index, (output, value) in enumerate(zip(outputs, before, strict=True)):
            try:
                now = output.clone()
            except RuntimeError:
                continue
            if not torch.equal(now.nan_to_num(), value.nan_to_num()):
                found.append(f"output {index}")
        return found

    def _recordings(self) -> int:
        manager = getattr(seams.cudagraphs.container(torch.cuda.current_device()), "tree_manager", None)
        if manager is None:
            return 0
        return sum(len(roots) for roots in manager.roots.values())


# ------------------------------------------------------------------------------------------- autotuning


class MaxAutotuneBackend(InductorBackend):
    """Matmuls from Triton templates, the fastest by measurement: each choice is recorded, and held to the same oracle."""

    name = "inductor_max_autotune"
    default_target = "cuda"
    variant_of = "inductor"

    def seams(self) -> tuple[Seam, ...]:
        return (seam, seams.max_autotune)

    def targets(self) -> tuple[str, ...]:
        return ("cuda",)

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if not torch.cuda.is_available():
            return all_unavailable("needs a CUDA device: choices are timed")
        return super().unavailable(target)

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        return _entry_with_mode("max-autotune")

    def compile(self, case: Case) -> Compiled:
        return MaxAutotuneCompiled(self, case)

    @contextmanager
    def settings(self, case: Case) -> Iterator[None]:
        with super().settings(case), seam.config.patch(max_autotune=True, max_autotune_gemm_backends="TRITON"):
            yield


class MaxAutotuneCompiled(InductorCompiled):
    def _open(self) -> None:
        self.tuned: list[dict[str, Any]] = []
        self._stack.enter_context(self._choices_heard())
        super()._open()

    @contextmanager
    def _choices_heard(self) -> Iterator[None]:
        selector = seams.max_autotune.selector()

        def heard(timings: dict[Any, float], operation: str, *_: Any) -> None:
            best = min(timings, key=lambda choice: timings[choice])
            taken = f"{best.name}: {getattr(best, 'description', '')}"
            self.tuned.append(
                {"operation": operation, "of": len(timings), "taken": taken, "ms": round(timings[best], 5)}
            )

        seams.max_autotune.add_feedback_saver(heard)
        try:
            yield
        finally:
            selector.feedback_saver_fns.remove(heard)

    def recapture(self) -> dict[str, Any]:
        return {}  # the front end is inductor's

    def _capture(self) -> Observation:
        if not self.tuned:
            return Observation.says(Verdict.UNSUPPORTED, "nothing in it has alternatives to tune")
        return super()._capture()

    def _fusion(self) -> Observation:
        seen = super()._fusion()
        del (
            seen.facts["kernels"],
            seen.facts["library"],
        )  # contracts speak of library calls; here a template is a kernel too
        seen.facts["tuned"] = [f"{one['operation']}, {one['of']} choices" for one in self.tuned]
        seen.texts["choices"] = "\n".join(
            f"{one['operation']}: {one['taken']}, {one['ms']} ms, of {one['of']}" for one in self.tuned
        )
        return seen

    def _cache(self) -> Observation:
        before = len(self.tuned)
        seen = super()._cache()
        seen.facts["tuned_again"] = len(self.tuned) - before
        return seen


# ----------------------------------------------------------------------------------- compiled autograd


class CompiledAutogradBackend(InductorBackend):
    """The backward pass is captured as a whole, accumulation of gradients included."""

    name = "inductor_autograd"
    variant_of = "inductor"

    def seams(self) -> tuple[Seam, ...]:
        return (seam, seams.compiled_autograd)

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda")

    def unavailable(self, target: Target) -> dict[Stage, str]:
        return {Stage.CACHE: "the same caches as inductor's: observed there", **super().unavailable(target)}

    def compile(self, case: Case) -> Compiled:
        return CompiledAutogradCompiled(self, case)


class CompiledAutogradCompiled(InductorCompiled):
    def around_backward(self) -> AbstractContextManager[Any]:
        return seams.compiled_autograd.enable(torch.compile)

    def recapture(self) -> dict[str, Any]:
        return {}

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        return None  # forward and backward are captured apart: no earlier form runs the whole

    def _capture(self) -> Observation:
        if not any(isinstance(spec, Tensor) and spec.grad for spec in self.case.micrograph.inputs):
            return Observation.says(
                Verdict.UNSUPPORTED, "no gradient is asked for: compiled autograd has nothing to do"
            )
        seen = super()._capture()
        seen.facts["graphs"] -= seen.facts["graphs"] > 1  # one more than in the forward alone: the backward
        seen.facts["backward_captured"] = self._snapshot["compiles"] > 1
        if not seen.facts["backward_captured"]:
            seen.findings.append(Finding(Kind.GRAPH_BREAK, BACKWARD_CAPTURED, "the backward pass was not captured"))
        return seen


# ---------------------------------------------------------------------------------------- ahead of time


class AheadOfTimeBackend(InductorBackend):
    """AOTInductor: export, compile to a package, load it, run that."""

    name = "inductor_aot"
    variant_of = "inductor"

    def seams(self) -> tuple[Seam, ...]:
        return (seam, seams.ahead_of_time)

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda")

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if _library_is_linked_in():
            return all_unavailable(LINKED_IN)
        return {
            Stage.CACHE: "a package is its own cache: loading it is the runtime stage",
            **super().unavailable(target),
        }

    def compile(self, case: Case) -> Compiled:
        return AheadOfTimeCompiled(self, case)


LINKED_IN = (
    "the C++ compiler finds no libstdc++.so and links libstdc++.a into each package, which crashes when Python loads it: "
    "put a link libstdc++.so to libstdc++.so.6 into a folder and name that in LIBRARY_PATH"
)


@cache
def _library_is_linked_in() -> bool:
    """Does the compiler find the C++ library only as an archive? It then names the file as it was asked for, without a folder."""
    compiler = os.environ.get("CXX", "g++")
    try:
        words = [compiler, "-print-file-name=libstdc++.so"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return False
    folders = os.environ.get("LIBRARY_PATH", "").split(os.pathsep)
    return said == "libstdc++.so" and not any(Path(folder, said).exists() for folder in folders if folder)


@contextmanager
def _settings_kept() -> Iterator[None]:
    """Packaging changes settings for good: whoever compiles next would miss the cache."""
    before = seams.ahead_of_time.config_copy()
    try:
        yield
    finally:
        now = seams.ahead_of_time.config_copy()
        for name in before:
            if now.get(name) is not before[name] and now.get(name) != before[name]:
                setattr(seam.config, name, before[name])


class AheadOfTimeCompiled(InductorCompiled):
    programs = ("inductor_aot_wrapper_code", "inductor_aot_kernel_code")

    def _open(self) -> None:
        self._stack.enter_context(_settings_kept())
        super()._open()
        self._why = ""
        contract = self.case.micrograph.contract
        inputs = self.case.inputs(0)
        if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            self._why = "a package computes no gradients"
        elif contract.capture.graphs != 1:
            self._why = "torch.export takes no graph breaks"
        elif self._writes_state(inputs):
            self._why = "a package has buffers of its own: what it writes to them cannot be seen from outside"
        if not self._why:
            self._build(inputs)

    def _writes_state(self, inputs: tuple[Any, ...]) -> bool:
        before = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        after = oracle.run(self.module, oracle.clone_inputs(inputs), self.module).state
        return any(not torch.equal(before[name], after[name]) for name in before)

    def _build(self, inputs: tuple[Any, ...]) -> None:
        with torch.no_grad():
            try:
                exported = torch.export.export(self.module, inputs, strict=False)
            except Exception as error:
                self._why = f"torch.export: {type(error).__name__}: {str(error).splitlines()[0][:160]}"
                return
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-aot-"))
            package = seams.ahead_of_time.package(exported, package_path=str(Path(folder) / "model.pt2"))
            self._fn = seams.ahead_of_time.load(package)
        self.watch.compiles = max(self.watch.compiles, 1)

    def __call__(self, *inputs: Any) -> Any:
        if self._why:
            raise NotImplementedError(self._why)
        return self._fn(*inputs)

    def blame(self, error: BaseException) -> Stage:
        return Stage.CAPTURE if self._why else super().blame(error)

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        return None

    def unfused(self) -> Callable[..., Any] | None:
        return None

    def recapture(self) -> dict[str, Any]:
        return {}

    def _capture(self) -> Observation:
        if self._why:
            return Observation.says(Verdict.UNSUPPORTED, self._why)
        seen = super()._capture()
        seen.facts["graphs"] = 1
        return seen
