"""The cache stage: miss, then hit; what changed must miss; saved artifacts hit in a process that compiled nothing.

Each compile starts from empty caches. Every probe compiles the same case once more with one thing changed, and stops at the miss where
a miss is all that is asked for: no kernel is built for it. What Dynamo knows nothing of is changed in one capture.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from conformance import backends, oracle, scenario
from conformance.backends.base import Case
from conformance.backends.inductor import guard_probes
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.seam import seam
from conformance.backends.inductor.watch import is_restart, nobody_listening
from conformance.errors import first_line
from conformance.fresh import FRESH, Died
from conformance.graphs import copied
from conformance.micrograph import Micrograph
from conformance.target import Target
from conformance.trace import Observation
from conformance.verdict import Verdict

if TYPE_CHECKING:
    from conformance.backends.inductor.compiled import InductorCompiled

# Settings that change generated code, and so must be part of every key, with a value that is not their default. Each
# micrograph tries one; the library tries all of them.
CHANGED = {
    "realize_reads_threshold": 3,
    "realize_opcount_threshold": 29,
    "max_fusion_size": 63,
    "unroll_reductions_threshold": 7,
    "epilogue_fusion": False,
    "pattern_matcher": False,
    "inplace_buffers": False,
    "allow_buffer_reuse": False,
    "size_asserts": False,
    "keep_output_stride": False,
    "permute_fusion": True,
    "cpp.min_chunk_size": 511,
    "cpp.simdlen": 128,
}
Probe = tuple[dict[str, int], str]  # the counters that moved, and in what the answer differs from eager

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a function, in torch's words: another one in every process


class Missed(Exception):
    """Raised in place of a compile, once the caches have answered that they have nothing."""


# ------------------------------------------------------------------------------------------------- counters


def counts() -> dict[str, int]:
    """The cache counters that torch keeps, under one name for all versions."""
    inductor, aot = seam.counters["inductor"], seam.counters["aot_autograd"]
    return {
        "fx_hit": inductor["fxgraph_cache_hit"],
        "fx_miss": inductor["fxgraph_cache_miss"],
        "fx_bypass": inductor["fxgraph_cache_bypass"],
        "aot_hit": aot["autograd_cache_hit"],
        "aot_miss": aot["autograd_cache_miss"],
        "aot_bypass": aot["autograd_cache_bypass"],
    }


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Counts what happens inside."""
    before = counts()
    difference: Counter[str] = Counter()
    yield difference
    after = counts()
    difference.update({name: after[name] - before[name] for name in after if after[name] != before[name]})


def _stop_at_miss(proceed: Callable[..., Any], *_: Any, **__: Any) -> Any:
    raise Missed


# --------------------------------------------------------------------------------------------------- probes


class CacheStage:
    """The probes of one compile."""

    def __init__(self, compiled: InductorCompiled, first: dict[str, int], compiles: int) -> None:
        self.compiled, self.case, self.backend = compiled, compiled.case, compiled.backend
        self.first = {name: count for name, count in first.items() if count}
        self.compiles = compiles
        self.module = self.case.module()
        self.ref = self._reference()
        self.changed = changed_setting(self.case.micrograph.name())

    def observe(self) -> Observation:
        facts: dict[str, Any] = {"first": self.first}
        if self.first.get("fx_bypass") or self.first.get("aot_bypass"):
            promised = self.case.micrograph.contract.cache.cacheable
            verdict = Verdict.FALLBACK if promised else Verdict.UNSUPPORTED
            return Observation(facts, verdict=verdict, reason=f"the cache was bypassed: {self._bypass_reason()}")
        if self.case.micrograph.has_scenario():
            with nobody_listening():
                facts["again"], wrong = self._played_again()
            return Observation(facts | {"differs": {"again": wrong} if wrong else {}})
        if self.compiled.watch.emptied:  # the caches keep programs
            _, wrong = self._again()
            if wrong:
                return Observation(facts | {"differs": {"again": wrong}})
            return Observation.says(Verdict.UNSUPPORTED, "nothing is left of the program to be kept", **facts)
        facts["changed_setting"] = next(iter(self.changed))
        artifacts = torch.compiler.save_cache_artifacts()
        if self.case.target.name == "cuda" and any(g.kernels for g in self.compiled.watch.graphs):
            facts["cubins"] = sum(1 for _ in self.compiled.folder.rglob("*.cubin"))
        self.compiled.watch.rung, self.compiled.watch.at_rest = "", True
        differs: dict[str, str] = {}
        with nobody_listening():
            found = self._from_one_capture()
            for name, probe in [*self._probes(), ("fresh_process", lambda: self._in_fresh_process(artifacts))]:
                found[name] = probe()
        for name, (moved, wrong) in found.items():
            facts[name] = moved
            differs |= {name: wrong} if wrong else {}
        return Observation(facts | {"differs": differs})

    def _bypass_reason(self) -> str:
        for name, _, payload in self.compiled.watch.events:
            if "bypass" in name:
                try:
                    reason = str(json.loads(payload)["cache_bypass_reason"]).splitlines()[0]
                    return ADDRESS.sub("", reason)[:200].strip()
                except (ValueError, KeyError, IndexError):
                    continue
        return "torch does not say why"

    def _from_one_capture(self) -> dict[str, Probe]:
        """A second compile of the same graph in the same process. What Dynamo captured for it is first handed on with one thing changed
        that Dynamo does not know: what is compiled under another setting, or with another number in it, must miss."""
        beside = _Beside(self.changed, with_constant=self.compiles == 1)
        with seam.subscribe(compile_fx=beside.compile_fx):
            moved, wrong = self._again()
        for others in beside.moved.values():
            moved = {name: left for name, count in moved.items() if (left := count - others[name])}
        return {"again": (moved, wrong)} | {name: (dict(others), "") for name, others in beside.moved.items()}

    def _probes(self) -> Iterator[tuple[str, Callable[[], Probe]]]:
        capture = self.case.micrograph.contract.capture
        static = [dim for dim in capture.recompiles if dim not in capture.dynamic]
        if static:
            size = guard_probes.sizes_to_probe(self.case.micrograph.dims[static[0]])[0]
            yield "changed_input", lambda: self._misses(self.case.inputs(0, **{static[0]: size}))
        if self.compiles == 1:
            for what, inputs in self._other_kinds():
                yield what, lambda inputs=inputs: self._misses(inputs)  # type: ignore[misc]

    def _call(self, inputs: tuple[Any, ...] | None = None) -> oracle.Outcome:
        """Compile anew, with Dynamo's own memory wiped, and run."""
        seam.reset()
        fn = self.backend.program(self.case, self.module)
        given = self.case.inputs(0) if inputs is None else inputs
        steps = self.case.micrograph.steps
        return oracle.run(lambda *x: fn(*self.backend.marked(self.case, x)), given, self.module, calls=steps)

    def _again(self) -> Probe:
        """A second compile of the same graph, in the same process."""
        with counted() as moved:
            outcome = self._call()
        differences = oracle.compare(outcome, self.ref)
        return moved, str(differences[0]) if differences else ""

    def _played_again(self) -> Probe:
        """The whole scenario once more, from what the caches hold by now."""
        with counted() as moved, self.compiled.player() as (module, run):
            outcome = oracle.play(module, run, self.case.inputs(0))
        differences = oracle.compare(outcome, self.ref)
        return moved, str(differences[0]) if differences else ""

    def _misses(self, inputs: tuple[Any, ...]) -> Probe:
        """What must not be served from the cache: the same program for other inputs."""
        with seam.subscribe(codegen_and_compile=_stop_at_miss), counted() as moved:
            self._call(inputs)
        return moved, ""

    def _other_kinds(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The same values in another dtype, and with other strides."""
        captured = self.compiled.watch.captured[0]
        for what, inputs, must in guard_probes.changes(self.case, self.case.inputs(0), captured):
            if must and oracle.run(self.module, oracle.clone_inputs(inputs), self.module).error is None:
                yield "changed_strides" if "strides" in what else "changed_dtype", inputs

    def _reference(self) -> oracle.Reference:
        micrograph, module = self.case.micrograph, self.case.module()
        random = micrograph.contract.runtime.random
        if micrograph.has_scenario():
            eager: Callable[[Any], Any] = lambda module: scenario.eager(self.backend.eager(self.case, module))
            return oracle.played(self.case.module, lambda: self.case.inputs(0), eager, random)
        fn = self.backend.eager(self.case, module)
        return oracle.reference(module, self.case.inputs(0), random=random, calls=micrograph.steps, fn=fn)

    # ------------------------------------------------------------------------------------------ fresh process

    def _in_fresh_process(self, artifacts: Any) -> Probe:
        """Artifacts, loaded in a process that has compiled nothing."""
        if not artifacts or not artifacts[0]:
            return {}, "save_cache_artifacts() gave nothing"
        folder = self.compiled.folder
        for name in (
            "fxgraph",
            "aotautograd",
        ):  # what a machine has that was sent the artifacts: kernels, and no graph cache
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "artifacts").write_bytes(artifacts[0])
        arguments = (self.case.micrograph, self.case.target.name, self.backend.name, str(folder))
        try:
            said = FRESH.call(load_and_run, *arguments)
        except Died as died:
            if died.death.timeout:
                raise TimeoutError(f"the fresh process gave no answer: {died}") from None
            return {}, f"the fresh process died: {died}"
        if "error" in said:
            return {}, said["error"]
        return said["counts"], self._differs(torch.load(folder / "answer.pt", weights_only=True))

    def _differs(self, got: dict[str, Any]) -> str:
        """Outputs, and what the call left in inputs and buffers."""
        want = self.ref.eager.outputs
        if len(got["outputs"]) != len(want):
            return f"{len(got['outputs'])} outputs, eager returns {len(want)}"
        named = {f"output {index}": value for index, value in enumerate(got["outputs"])} | got["inputs"] | got["state"]
        eager, exact = _named(self.ref.eager), _named(self.ref.exact) if self.ref.exact else {}
        for name, value in named.items():
            for difference in oracle.value_differences(name, value, eager.get(name), exact.get(name)):
                return str(difference)
        return ""


class _Beside:
    """Hands the first graph that Dynamo gives to Inductor on more than once: with a setting changed, with a number changed, and as it is.
    `moved` is what the caches counted for the first two."""

    def __init__(self, settings: dict[str, Any], with_constant: bool) -> None:
        self.settings, self.with_constant = settings, with_constant
        self.moved: dict[str, Counter[str]] = {"changed_config": Counter()}
        self.busy = False

    def compile_fx(
        self, proceed: Callable[..., Any], model: Any, example_inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if not self.busy and isinstance(model, torch.fx.GraphModule):
            self.busy = True  # compile_fx calls itself
            misses = lambda graph: proceed(graph, list(example_inputs), *args, **kwargs)
            with seam.config.patch(self.settings):
                self._compiled("changed_config", misses, copied(model))
            other = copied(model)
            if self.with_constant and changed_constant(other):
                self._compiled("changed_constant", misses, other)
        return proceed(model, example_inputs, *args, **kwargs)

    def _compiled(self, name: str, misses: Callable[[Any], Any], graph: Any) -> None:
        restart = None
        with seam.subscribe(codegen_and_compile=_stop_at_miss), counted() as moved:
            try:
                misses(graph)
            except Exception as error:
                restart = error if is_restart(error) else None
        self.moved.setdefault(name, Counter()).update(moved)
        if restart is not None:
            self.busy = False
            raise restart


def changed_setting(name: str) -> dict[str, Any]:
    """The setting that a micrograph tries, by its name: the same one in every version that has it."""
    start = zlib.crc32(name.encode()) % len(CHANGED)
    for setting in [*CHANGED][start:] + [*CHANGED][:start]:
        with suppress(AttributeError):
            if operator.attrgetter(setting)(seam.config) != CHANGED[setting]:
                return {setting: CHANGED[setting]}
    raise LookupError("no setting of Inductor that the suite knows is there to be changed")


def _named(outcome: oracle.Outcome) -> dict[str, Any]:
    """Everything that a call left behind, by name."""
    return {f"output {index}": value for index, value in enumerate(outcome.outputs)} | outcome.inputs | outcome.state


def load_and_run(micrograph: type[Micrograph], target: str, backend_name: str, folder: str) -> dict[str, Any]:
    """In a fresh process: load the artifacts, run the case, leave the answer in the folder, and tell what the caches counted."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    case = Case(micrograph, Target.parse(target))
    backend: Any = backends.get(backend_name)
    if case.target.headless:
        from conformance.headless import races

        races.ASKED.set(False)  # in this process, which is for this call alone
    with backend.settings(case), kernel_store(), nobody_listening():
        torch.compiler.load_cache_artifacts((Path(folder) / "artifacts").read_bytes())
        module = case.module()
        with counted() as moved:
            fn = backend.program(case, module)
            call: Callable[..., Any] = lambda *inputs: fn(*backend.marked(case, inputs))
            outcome = oracle.run(call, case.inputs(0), module, calls=micrograph.steps)
    if outcome.error is not None:
        return {"error": first_line(outcome.error)}
    torch.save(
        {"outputs": outcome.outputs, "inputs": outcome.inputs, "state": outcome.state}, Path(folder) / "answer.pt"
    )
    return {"counts": moved}


# Their first number says nothing outside of training (a rate, a momentum), or where embeddings have no largest norm (its order).
SILENT = {"multi_head_attention_forward", "embedding", "embedding_bag", "batch_norm", "instance_norm"}


def changed_constant(gm: torch.fx.GraphModule) -> bool:
    """Change the first number that the graph computes with; False where there is none."""
    for node in gm.graph.nodes:
        called = getattr(node.target, "__name__", str(node.target))  # a node is named after the variable of the source
        silent = "dropout" in called or called in SILENT
        overwritten = any(user.kwargs.get("out") is node for user in node.users)
        if node.op in ("call_function", "call_method") and not silent and not overwritten:
            for index, value in enumerate(node.args):
                if type(value) is float and math.isfinite(value):
                    other = value + 0.5
                    node.update_arg(index, other if other != value else value / 2)  # 1e16 + 0.5 is 1e16
                    gm.recompile()
                    return True
    return False
