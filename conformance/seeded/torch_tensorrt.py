"""Faults of Torch-TensorRT, for a GPU that is only described: real lowering, real partitions, real engines, none of them run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.errors import UsageError
from conformance.seam import Seam
from conformance.seeded import fault as library
from conformance.seeded.fault import retarget, swapped

aten = torch.ops.aten
DYNAMO = "torch_tensorrt.dynamo"


def fault(stage: str, kinds: str, on: str, also: str = "") -> Any:
    return library.fault(stage, kinds, on, backend="torch_tensorrt", target="sm_90", also=also)


def _loaded() -> Seam:
    """The names of the package, imported the way that the backend imports it: without a GPU it does not import by itself."""
    from conformance.backends.torch_tensorrt.seam import not_importable, seam

    if why := not_importable():
        raise UsageError(f"cannot seed this fault here: {why}")
    return seam


@contextmanager
def _one_more_pass(edit: Callable[[Any], None]) -> Iterator[None]:
    """The last lowering pass does this to the graph."""
    seam = _loaded()

    def seeded_pass(gm: Any, settings: Any) -> Any:
        edit(gm)
        gm.recompile()
        return gm

    with seam.replace(post_passes=[*seam.post_passes, seeded_pass]):
        yield


@contextmanager
def _without_pass(name: str) -> Iterator[None]:
    seam = _loaded()
    kept = [p for p in seam.post_passes if getattr(p, "__name__", "") != name]
    if len(kept) == len(seam.post_passes):
        raise UsageError(f"cannot seed this fault here: there is no lowering pass {name} in this version")
    with seam.replace(post_passes=kept):
        yield


# -------------------------------------------------------------------------------- capture, decomposition


@fault("capture", "wrong_result", "pointwise.chain pointwise.shared_producer")
def trt_exported_wrong_op() -> Iterator[None]:
    """The exported program adds where the module subtracts."""

    def make(original: Any) -> Any:
        def export(*args: Any, **kwargs: Any) -> Any:
            program = original(*args, **kwargs)
            retarget(program.graph_module, aten.sub.Tensor, aten.add.Tensor)
            retarget(program.graph_module, aten.sin.default, aten.cos.default)
            return program

        return export

    _loaded()
    with swapped("torch.export:export", make):
        yield


@fault("capture", "extra_recompile", "dynamic.batch_and_length dynamic.shape_arithmetic")
def trt_dims_fixed() -> Iterator[None]:
    """torch.export refuses every symbolic dim."""

    def make(original: Any) -> Any:
        def export(*args: Any, dynamic_shapes: Any = None, **kwargs: Any) -> Any:
            if dynamic_shapes is not None:
                raise torch._dynamo.exc.UserError(
                    torch._dynamo.exc.UserErrorType.CONSTRAINT_VIOLATION, "constraints violated (b)"
                )
            return original(*args, **kwargs)

        return export

    _loaded()
    with swapped("torch.export:export", make):
        yield


@contextmanager
def _decompositions(changes: dict[Any, Any]) -> Iterator[None]:
    _loaded()
    with swapped(
        f"{DYNAMO}._compiler:get_decompositions", lambda original: lambda *a, **k: {**original(*a, **k), **changes}
    ):
        yield


@fault("decomposition", "wrong_result", "mlp.swiglu norm.decoder_block")
def trt_wrong_silu() -> Iterator[None]:
    """silu is decomposed into x·tanh(x)."""
    with _decompositions({aten.silu.default: lambda x: x * torch.tanh(x)}):
        yield


@fault("decomposition", "wrong_result", "matmul.linear_bias_relu edge.nan_inf")
def trt_wrong_relu() -> Iterator[None]:
    """relu is decomposed into the absolute value."""
    with _decompositions({aten.relu.default: lambda x: x.abs()}):
        yield


@fault("decomposition", "lost_mutation", "kv_cache.slice_scatter kv_cache.slice_assign")
def trt_lost_copy_epilogue() -> Iterator[None]:
    """A program that was decomposed has lost its final copy_ into a mutated input."""
    _loaded()
    decomposed: list[Any] = []

    def run_decompositions(original: Any) -> Any:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            decomposed.append(original(self, *args, **kwargs))
            return decomposed[-1]

        return run

    def module(original: Any) -> Any:
        def make(self: Any, *args: Any, **kwargs: Any) -> Any:
            gm = original(self, *args, **kwargs)
            return _without_copies(gm) if any(self is program for program in decomposed) else gm

        return make

    program = "torch.export.exported_program:ExportedProgram"
    with swapped(f"{program}.run_decompositions", run_decompositions), swapped(f"{program}.module", module):
        yield


def _without_copies(gm: Any) -> Any:
    for node in list(gm.graph.nodes):
        if node.target is aten.copy_.default:
            node.replace_all_uses_with(node.args[1])
            gm.graph.erase_node(node)
    gm.recompile()
    return gm


# -------------------------------------------------------------------------------------------- lowering


@fault("postgrad", "wrong_result", "pointwise.chain pointwise.broadcast")
def trt_pass_flips_sign() -> Iterator[None]:
    """A lowering pass turns a subtraction around."""
    with _one_more_pass(lambda gm: retarget(gm, aten.sub.Tensor, aten.add.Tensor) and None):  # type: ignore[arg-type]
        yield


@fault("postgrad", "metadata_loss", "pointwise.chain reduction.softmax")
def trt_pass_drops_metadata() -> Iterator[None]:
    """A lowering pass leaves a node that does not say its shape and dtype."""

    def edit(gm: Any) -> None:
        node = next(n for n in gm.graph.nodes if n.op == "call_function")
        node.meta = {}

    with _one_more_pass(edit):
        yield


@fault("postgrad", "lost_mutation", "kv_cache.slice_scatter kv_cache.slice_assign kv_cache.paired")
def trt_pass_drops_write() -> Iterator[None]:
    """A lowering pass takes the write into a cache for dead code."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target is aten.slice_scatter.default:
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)

    with _one_more_pass(edit):
        yield


@fault("postgrad", "wrong_result", "edge.constant norm.layer_norm quantized.fake_quant")
def trt_constant_folded_wrongly() -> Iterator[None]:
    """Constants of the graph are changed by a lowering pass."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if node.op == "call_function" and len(node.args) > 1 and isinstance(node.args[1], float):
                node.args = (node.args[0], node.args[1] * 1.5, *node.args[2:])
        for name, value in [*gm.named_buffers(), *gm.named_parameters()]:
            if "frozen" in name and value.is_floating_point():
                with torch.no_grad():
                    value.mul_(1.5)

    with _one_more_pass(edit):
        yield


@fault("postgrad", "match_loss unfused crash", "dtypes.complex", also="fusion codegen")
def trt_complex_pass_off() -> Iterator[None]:
    """The pass that writes complex numbers as pairs of real ones is disabled."""
    with _without_pass("complex_lowering_pass"):
        yield


# -------------------------------------------------------------------------------------------- partitions


@contextmanager
def _without_converter(name: str) -> Iterator[None]:
    tables = _loaded().converters.registries
    gone = [(table, op, table.pop(op)) for table in tables for op in list(table) if str(op).startswith(name)]
    if not gone:
        raise UsageError(f"cannot seed this fault here: there is no converter of {name}")
    try:
        yield
    finally:
        for table, op, converter in gone:
            table[op] = converter


@fault("fusion", "unfused", "indexing.sort indexing.top_k")
def trt_sort_converter_removed() -> Iterator[None]:
    """There is no converter for sort and topk any more."""
    with _without_converter("aten.sort"), _without_converter("aten.topk"):
        yield


@fault("fusion", "unfused", "reduction.softmax")
def trt_softmax_converter_removed() -> Iterator[None]:
    """There is no converter for softmax any more."""
    with _without_converter("aten._softmax"):
        yield


@fault("fusion", "wrong_result", "pointwise.shared_producer moe.routing")
def trt_partition_outputs_swapped() -> Iterator[None]:
    """The partitioner gives the outputs of its engine in the reverse order."""

    def make(original: Any) -> Any:
        def partition(*args: Any, **kwargs: Any) -> Any:
            gm, support = original(*args, **kwargs)
            output = next(n for n in gm.graph.nodes if n.op == "output")
            if isinstance(output.args[0], (tuple, list)):
                output.args = (type(output.args[0])(reversed(output.args[0])),)
                gm.recompile()
            return gm, support

        return partition

    _loaded()
    with swapped(f"{DYNAMO}.partitioning:fast_partition", make):
        yield


@fault("fusion", "crash", "pointwise.chain")
def trt_partitioner_raises() -> Iterator[None]:
    """The partitioner raises."""

    def partition(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no partition could be made")

    _loaded()
    with swapped(f"{DYNAMO}.partitioning:fast_partition", lambda _: partition):
        yield


# ------------------------------------------------------------------------------------------------ engines


@fault("codegen", "crash", "pointwise.chain mlp.gelu")
def trt_converter_raises() -> Iterator[None]:
    """The converter of tanh takes the op and raises."""

    def make(original: Any) -> Any:
        def run_node(self: Any, node: Any) -> Any:
            if node.target in (aten.tanh.default, aten.gelu.default, aten.erf.default):
                raise RuntimeError(f"conversion of {node.target} failed")
            return original(self, node)

        return run_node

    _loaded()
    with swapped(f"{DYNAMO}.conversion._TRTInterpreter:TRTInterpreter.run_node", make):
        yield


@fault(
    "codegen", "lost_mutation crash", "kv_cache.slice_scatter kv_cache.slice_assign kv_cache.paired", also="postgrad"
)
def trt_alias_not_declared() -> Iterator[None]:
    """The layer that updates a cache in place does not say that its output is the cache."""

    def make(original: Any) -> Any:
        def run_node(self: Any, node: Any) -> Any:
            result = original(self, node)
            self.ctx.aliased_outputs.clear()
            return result

        return run_node

    _loaded()
    with swapped(f"{DYNAMO}.conversion._TRTInterpreter:TRTInterpreter.run_node", make):
        yield


@fault("codegen", "crash", "reduction.softmax pointwise.chain")
def trt_builder_gives_nothing() -> Iterator[None]:
    """The builder gives no engine."""

    def make(original: Any) -> Any:
        def interpret(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("the builder returned no serialized network")

        return interpret

    _loaded()
    with swapped(f"{DYNAMO}.conversion._conversion:interpret_module_to_result", make):
        yield


# -------------------------------------------------------------------------------------------- engine cache


@fault("cache", "cache_miss", "pointwise.transcendental norm.rmsnorm")
def trt_engine_not_kept() -> Iterator[None]:
    """Nothing is put into the engine cache."""
    _loaded()
    with swapped(f"{DYNAMO}._engine_cache:BaseEngineCache.insert", lambda _: lambda self, *args, **kwargs: None):
        yield


@fault("cache", "cache_miss", "pointwise.transcendental norm.rmsnorm")
def trt_engine_key_never_the_same() -> Iterator[None]:
    """The key of the engine cache has a counter in it."""
    _loaded()
    counter = itertools.count()
    with swapped(
        f"{DYNAMO}._engine_cache:BaseEngineCache.get_hash",
        lambda original: lambda *a, **k: f"{original(*a, **k)}{next(counter)}",
    ):
        yield


@fault("cache", "stale_cache crash", "pointwise.transcendental norm.rmsnorm")
def trt_engine_key_always_the_same() -> Iterator[None]:
    """Every engine has the same key."""
    _loaded()
    with swapped(f"{DYNAMO}._engine_cache:BaseEngineCache.get_hash", lambda _: lambda *a, **k: "0" * 64):
        yield
