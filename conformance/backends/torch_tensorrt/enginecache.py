"""The cache stage: an engine is found again, and no other program is served in its place.

Torch-TensorRT's engine cache keys on the partition's graph, its input specs and some settings, and refits weights on a hit. The
stage drives it where it acts, on the partitions of the compile that was observed, with a cache of its own that counts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import fx

from conformance.backends.torch_tensorrt.api import Library
from conformance.backends.torch_tensorrt.recorder import Recorder
from conformance.backends.torch_tensorrt.recording import Engine, Recording, snapshot
from conformance.errors import first_line
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict

if TYPE_CHECKING:
    from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled

# An engine is cached only if its weights can be refitted.
CACHED = {"cache_built_engines": True, "reuse_cached_engines": True, "immutable_weights": False}
# A setting that must be part of the key, and another value for it.
CHANGED = {"disable_tf32": False, "optimization_level": 1, "use_fp32_acc": True}


class Missed(Exception):
    """The cache was asked and did not have it: all that a probe wants to know."""


def counting(library: Library) -> Any:
    """A cache in memory that counts: misses by what is stored, hits by what is served."""

    class Counting(library.engine_cache):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.blobs: dict[str, bytes] = {}
            self.hits = self.misses = 0
            self.probing = False

        def save(self, hash: str, blob: bytes, *args: Any, **kwargs: Any) -> None:
            self.misses += 1
            self.blobs[hash] = blob

        def load(self, hash: str, *args: Any, **kwargs: Any) -> bytes | None:
            blob = self.blobs.get(hash)
            if blob is None and self.probing:
                raise Missed
            self.hits += blob is not None
            return blob

        def taken(self) -> dict[str, int]:
            counts = {"engine_hit": self.hits, "engine_miss": self.misses}
            self.hits = self.misses = 0
            return {name: count for name, count in counts.items() if count}

    return Counting()


def observe_cache(compiled: TorchTensorRTCompiled) -> Observation:
    engines = compiled.recording.engines
    if not engines:
        return Observation.says(Verdict.FALLBACK, "there is no engine to cache: every op stayed in PyTorch")
    probe = Probe(compiled)
    try:
        facts: dict[str, Any] = {"first": probe.builds(engines), "again": probe.builds(engines)}
        changed = {name: probe.changed(engines, name, value) for name, value in CHANGED.items()}
    except Exception as error:
        return Observation.says(Verdict.ERROR, f"with the engine cache on: {first_line(error)}")
    served = [name for name, hits in changed.items() if hits]
    facts["changed_config"] = {"engine_hit": len(served)} if served else {"engine_miss": len(changed)}
    facts["changed_config_served"] = served
    collisions = [found for engine in engines for found in probe.collisions(engine)]
    facts["changed_graph"] = {"probes": probe.probes, "served": len(collisions)}
    findings = [Finding(Kind.STALE_CACHE, "TRT003", f"the key is the same when {what}") for what in collisions[:1]]
    facts["timing_cache"] = "none: TensorRT-RTX does not tune" if compiled.library.rtx else "file"
    return Observation(facts, {"served in place of another": "\n".join(collisions)}, findings=findings)


class Probe:
    def __init__(self, compiled: TorchTensorRTCompiled) -> None:
        self.library = compiled.library
        self.target = compiled.case.target
        self.cache = counting(self.library)
        self.probes = 0

    def settings(self, engine: Engine, **changes: Any) -> Any:
        settings = copy.copy(engine.settings)
        # A hit refits weights into a loaded engine, which needs a driver; without weights in the plan there is nothing to refit.
        for name, value in {**CACHED, "strip_engine_weights": self.target.headless, **changes}.items():
            setattr(settings, name, value)
        return settings

    def builds(self, engines: list[Engine]) -> dict[str, int]:
        for engine in engines:
            self._interpret(engine.graph, engine, self.settings(engine))
        return self.cache.taken()

    def changed(self, engines: list[Engine], name: str, value: Any) -> int:
        """How many engines a changed setting is still served from the cache, though the network or its build differ."""
        hits = 0
        for engine in engines:
            if name == "use_fp32_acc" and not self._differs(engine, name, value):
                continue
            hits += self._served(engine.graph, engine, self.settings(engine, **{name: value}))
        return hits

    def collisions(self, engine: Engine) -> Iterator[str]:
        """Programs that differ in one argument or in the order of two operands, and have the same key."""
        for what, twin in twins(engine.graph):
            self.probes += 1
            if self._key(twin, engine) == self._key(engine.graph, engine):
                yield what

    def _key(self, graph: fx.GraphModule, engine: Engine) -> str:
        return str(self.cache.get_hash(graph, engine.specs, self.settings(engine)))

    def _served(self, graph: fx.GraphModule, engine: Engine, settings: Any) -> bool:
        self.cache.probing = True
        try:
            self._interpret(graph, engine, settings)
        except Missed:
            return False
        finally:
            self.cache.probing = False
            self.cache.taken()
        return True

    def _interpret(self, graph: fx.GraphModule, engine: Engine, settings: Any) -> Recording:
        record = Recording()
        recorder = Recorder(self.library, self.target, record)
        recorder.engine = Engine(engine.name, engine.graph)
        record.engines.append(recorder.engine)
        with recorder.watching():
            self.library.conversion.interpret_module_to_result(snapshot(graph), engine.specs, settings, engine_cache=self.cache)
        return record

    def _differs(self, engine: Engine, name: str, value: Any) -> bool:
        """Does the setting change the network at all? It is defined and not built."""
        return self._network(engine, self.settings(engine)) != self._network(engine, self.settings(engine, **{name: value}))

    def _network(self, engine: Engine, settings: Any) -> list[tuple[str, str]]:
        recorder = Recorder(self.library, self.target, Recording())
        recorder.engine = Engine(engine.name, engine.graph)
        with recorder.watching():
            interpreter = self.library.interpreter(snapshot(engine.graph), engine.specs, compilation_settings=settings)
            interpreter._construct_trt_network_def()
        return [(layer.type, layer.op) for layer in recorder.engine.layers]


def twins(gm: fx.GraphModule) -> Iterator[tuple[str, fx.GraphModule]]:
    """The same graph with one thing changed that changes what it computes."""
    for node in gm.graph.nodes:
        if node.op != "call_function":
            continue
        for index, value in enumerate(node.args):
            other = _other(value)
            if other is not None:
                yield f"an argument of {node.target} is {other}, not {value}", _with_argument(gm, node.name, index, other)
        first, second = (*node.args, None, None)[:2]
        if str(node.target).split(".")[1:2] in (["sub"], ["div"], ["matmul"], ["bmm"], ["mm"]) and _swappable(first, second):
            yield f"the operands of {node.target} are swapped", _with_arguments(gm, node.name, second, first)


def _other(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        return [*value[:-1], value[-1] + 1]
    return None


def _swappable(first: Any, second: Any) -> bool:
    if not (isinstance(first, fx.Node) and isinstance(second, fx.Node)) or first is second:
        return False
    shapes = [getattr(node.meta.get("val"), "shape", None) for node in (first, second)]
    return shapes[0] is not None and shapes[0] == shapes[1]


def _with_argument(gm: fx.GraphModule, name: str, index: int, value: Any) -> fx.GraphModule:
    twin = snapshot(gm)
    node = next(node for node in twin.graph.nodes if node.name == name)
    node.update_arg(index, value)
    return twin


def _with_arguments(gm: fx.GraphModule, name: str, *values: fx.Node) -> fx.GraphModule:
    twin = snapshot(gm)
    by_name = {node.name: node for node in twin.graph.nodes}
    for index, value in enumerate(values):
        by_name[name].update_arg(index, by_name[value.name])
    return twin
