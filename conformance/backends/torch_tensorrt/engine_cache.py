"""The cache stage: an engine is found again, and no other program is served in its place.

Torch-TensorRT's engine cache keys on the partition's graph, its input specs and some settings, and refits weights on a
hit. The stage drives it where it acts, on the partitions of the compile that was observed, with a cache of its own that
counts."""

from __future__ import annotations

import copy
import operator
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_arg

from conformance import graphs, oracle
from conformance.backends.base import Case
from conformance.backends.torch_tensorrt.compilation import Compilation
from conformance.backends.torch_tensorrt.compile_log import CompileLog, Engine, ops, snapshot
from conformance.backends.torch_tensorrt.instrument import Instrument
from conformance.backends.torch_tensorrt.program import state_of
from conformance.backends.torch_tensorrt.seam import seam
from conformance.checks.measured import BUILD_RAISES, ENGINE_KEY
from conformance.errors import first_line
from conformance.target import Target
from conformance.torch_seam import OpOverload
from conformance.trace import Observation, digest
from conformance.verdict import Finding, Kind, Verdict

# An engine is cached only if its weights can be refitted.
CACHED = {"cache_built_engines": True, "reuse_cached_engines": True, "immutable_weights": False}
# A setting that must be part of the key, and another value for it.
CHANGED = {"disable_tf32": False, "optimization_level": 1, "use_fp32_acc": True}
LIMIT = 8  # twins of one engine


class Missed(Exception):
    """The cache was asked and did not have it: all that a probe wants to know."""


def counting() -> Any:
    """A cache in memory that counts: misses by what is stored, hits by what is served."""

    class Counting(seam.engine_cache):  # type: ignore[misc, name-defined]
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


def observe_cache(case: Case, log: CompileLog) -> Observation:
    """Drive the engine cache with the engines of a compile."""
    engines = log.engines
    if not engines and log.lowered is not None and not ops(log.lowered):
        return Observation.says(Verdict.UNAVAILABLE, "there is nothing to compute, and no engine to cache")
    if not engines:
        return Observation.says(Verdict.FALLBACK, "there is no engine to cache: every op stayed in PyTorch")
    probe = Probe(case.target)
    try:
        facts: dict[str, Any] = {"first": probe.builds(engines), "again": probe.builds(engines)}
        changed = {name: probe.changed(engines, name, value) for name, value in CHANGED.items()}
    except Exception as error:
        told = f"with the engine cache on: {first_line(error)}"
        if (
            type(error).__name__ == "UnsupportedOperatorException"
        ):  # some converters refuse engines that can be refitted
            return Observation.says(Verdict.UNSUPPORTED, told)
        return Observation(findings=[Finding(Kind.CRASH, BUILD_RAISES, told)])
    served = [name for name, hits in changed.items() if hits]
    facts["changed_config"] = {"engine_hit": len(served)} if served else {"engine_miss": len(changed)}
    facts["changed_config_served"] = served
    collisions = [found for engine in engines for found in probe.collisions(engine)]
    facts["changed_graph"] = {"probes": probe.probes, "served": len(collisions)}
    findings = [Finding(Kind.STALE_CACHE, ENGINE_KEY, f"the key is the same when {what}") for what in collisions[:1]]
    if not case.target.headless:
        facts["changed_weights"], wrong = refitted(case)
        facts["differs"] = {"changed_weights": wrong} if wrong else {}
    facts["timing_cache"] = "none: TensorRT-RTX does not tune" if seam.features.tensorrt_rtx else "file"
    return Observation(facts, {"served in place of another": "\n".join(collisions)}, findings=findings)


def refitted(case: Case) -> tuple[dict[str, int], str]:
    """The same program with other weights hits, and the engine that is served computes with the new ones. Returns what
    the cache counted at the second compile, and in what its result differs from eager."""
    cache = counting()
    for seed in (0, 1):
        cache.taken()
        made = Compilation(case, case.micrograph.build(seed).to(case.run_device).eval())
        made.run(**CACHED, custom_engine_cache=cache)
    module, result, calls = made.module, made.log.result, case.micrograph.steps
    ref = oracle.reference(module, case.inputs(), random=case.micrograph.contract.runtime.random, calls=calls)
    outcome = oracle.run(result, case.inputs(), state_of(module, result), calls=calls)
    return cache.taken(), "; ".join(str(difference) for difference in oracle.compare(outcome, ref)[:2])


class Probe:
    """Asks the engine cache for engines that it has, and for such that it must not serve."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cache = counting()
        self.probes = 0

    def settings(self, engine: Engine, **changes: Any) -> Any:
        settings = copy.copy(engine.settings)
        # A hit refits weights into a loaded engine, which needs a driver; without weights in the plan there is nothing
        # to refit.
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
        """Programs that differ in an argument or in the order of two operands, and would get this engine: the key is
        the same, and so are all weights, so that the refit on a hit does not put it right."""
        key, weights = self._key(engine.graph, engine), None
        for what, twin in islice(twins(engine.graph), LIMIT):
            self.probes += 1
            if self._key(twin, engine) != key:
                continue
            weights = self._weights(engine.graph, engine) if weights is None else weights
            if self._weights(twin, engine) == weights:
                yield what

    def _weights(self, graph: fx.GraphModule, engine: Engine) -> dict[str, str] | str:
        """All constants of the network by name: what a refit sets."""
        try:
            interpreter = self._defined(graph, engine, self.settings(engine))[0]
        except Exception as error:
            return first_line(error)
        return {
            name: digest(str(torch.as_tensor(w).tolist()))
            for name, w in getattr(interpreter.ctx, "weight_refit_map", {}).items()
        }

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

    def _interpret(self, graph: fx.GraphModule, engine: Engine, settings: Any) -> None:
        instrument = self._instrument(engine)
        with instrument.watching():
            seam.interpret(snapshot(graph), engine.specs, settings, engine_cache=self.cache)

    def _instrument(self, engine: Engine) -> Instrument:
        """One that writes down what becomes of this engine."""
        instrument = Instrument(self.target, CompileLog())
        instrument.engine = Engine(engine.name, engine.graph)
        return instrument

    def _differs(self, engine: Engine, name: str, value: Any) -> bool:
        """Does the setting change the network at all? It is defined and not built."""
        return self._network(engine, self.settings(engine)) != self._network(
            engine, self.settings(engine, **{name: value})
        )

    def _network(self, engine: Engine, settings: Any) -> list[tuple[str, str]]:
        return [(layer.type, layer.op) for layer in self._defined(engine.graph, engine, settings)[1].layers]

    def _defined(self, graph: fx.GraphModule, engine: Engine, settings: Any) -> tuple[Any, Engine]:
        instrument = self._instrument(engine)
        with instrument.watching():
            interpreter = seam.interpreter(snapshot(graph), engine.specs, compilation_settings=settings)
            seam.define_network(interpreter)
        assert instrument.engine is not None
        return interpreter, instrument.engine


def twins(gm: fx.GraphModule) -> Iterator[tuple[str, fx.GraphModule]]:
    """The same graph with one thing changed, and still for an engine: other results of the same shapes."""
    for node in gm.graph.nodes:
        if node.target is not operator.getitem and not isinstance(node.target, OpOverload):
            continue
        for what, args in _changes(node):
            if _is_twin(node, args):
                twin, changed = _with_arguments(gm, node.name, args)
                if changed.target is operator.getitem or changed in seam.converters:
                    yield what, twin


def _changes(node: fx.Node) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for index, value in enumerate(node.args):
        for other in _others(value):
            args = (*node.args[:index], other, *node.args[index + 1 :])
            yield f"an argument of {node.target} is {other}, not {value}", args
    if len(node.args) >= 2 and _swappable(node):
        yield f"the operands of {node.target} are swapped", (node.args[1], node.args[0], *node.args[2:])


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (int, float)):
        yield value + 1
        yield value - 1
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        yield [*value[:-1], value[-1] + 1]
        turned = [*reversed(value)]
        yield turned if turned != [*value] else [*value[:-1], value[-1] - 1]


def _swappable(node: fx.Node) -> bool:
    operands = node.args[:2]
    ordered = graphs.op_name(node.target).split(".")[1:2] in (["sub"], ["div"], ["matmul"], ["bmm"], ["mm"])
    return ordered and all(isinstance(n, fx.Node) for n in operands) and operands[0] is not operands[1]


def _is_twin(node: fx.Node, args: tuple[Any, ...]) -> bool:
    """Does the op take these arguments, and give other values in tensors of the same shapes and dtypes? It is run: fake tensors take
    arguments that the op itself refuses, and some arguments change nothing (the padding index of an embedding). Integers are zeros and ones,
    which are indices as well; where the op refuses zeros, ones and twos."""
    return any(_computes_another(node, args, least) for least in (0, 1))


def _computes_another(node: fx.Node, args: tuple[Any, ...], least: int) -> bool:
    def run(arguments: tuple[Any, ...]) -> Any:
        values, keywords = map_arg((arguments, node.kwargs), lambda source: _drawn(source, least))
        return node.target(*values, **keywords)  # type: ignore[operator]

    try:
        given, own = run(args), run(node.args)
        return _signature(given) == _signature(own) and not _same_values(given, own)
    except Exception:
        return False


def _drawn(node: fx.Node, least: int) -> Any:
    """Values for a node, the same at every call."""
    generator = torch.Generator().manual_seed(zlib.crc32(node.name.encode()))

    def draw(value: torch.Tensor) -> torch.Tensor:
        sizes = [int(size) for size in value.shape]
        if value.dtype.is_floating_point:
            return torch.randn(sizes, generator=generator).to(value.dtype)
        return torch.randint(least, least + 2, sizes, generator=generator).to(value.dtype)

    value = node.meta["val"]
    if isinstance(value, (tuple, list)):
        return type(value)(draw(v) for v in value)
    return draw(value) if isinstance(value, torch.Tensor) else int(value)


def _same_values(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return all(_same_values(a, b) for a, b in zip(one, other, strict=True))
    return (
        torch.allclose(one.double(), other.double(), equal_nan=True) if isinstance(one, torch.Tensor) else one == other
    )


def _signature(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_signature(v) for v in value]
    return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else type(value)


def _with_arguments(gm: fx.GraphModule, name: str, args: tuple[Any, ...]) -> tuple[fx.GraphModule, fx.Node]:
    """A copy of the graph in which a node has other arguments, and that node."""
    twin = snapshot(gm)
    by_name = {node.name: node for node in twin.graph.nodes}
    by_name[name].args = map_arg(args, lambda n: by_name[n.name])
    twin.recompile()
    return twin, by_name[name]
