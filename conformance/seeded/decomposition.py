"""Faults of AOTAutograd and its decompositions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.seeded.fault import entries, fault, retarget, swapped

aten = torch.ops.aten
GRAPH = "torch._functorch._aot_autograd.graph_capture:aot_dispatch_base_graph"
JOINT = "torch._functorch._aot_autograd.graph_capture:aot_dispatch_autograd_graph"


@contextmanager
def decomposed(**table: Callable[..., Any] | None) -> Iterator[None]:
    """Other decompositions for these ops (`mul__Tensor` for `mul.Tensor`); None takes one away."""
    from torch._inductor import decomposition

    decomposition.fast_random_decomps.cache_clear()
    with entries(decomposition.decompositions) as known:
        for name, function in table.items():
            packet, _, overload = name.partition("__")
            op = getattr(getattr(aten, packet), overload or "default")
            known.pop(op, None)
            if function is not None:
                known[op] = function
        try:
            yield
        finally:
            decomposition.fast_random_decomps.cache_clear()


@contextmanager
def _traced(path: str, edit: Callable[[Any], None]) -> Iterator[None]:
    """Edit the graph that AOTAutograd traced."""

    def make(original: Any) -> Any:
        def trace(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            edit(result[0])
            result[0].recompile()
            return result

        return trace

    # The function is imported by name where it is called.
    name = path.rpartition(":")[2]
    users = [f"torch._functorch._aot_autograd.{module}" for module in ("graph_compile", "jit_compile_runtime_wrappers")]
    user = next((module for module in users if _has(module, name)), path.partition(":")[0])
    with swapped(f"{user}:{name}", make):
        yield


def _has(module: str, name: str) -> bool:
    from importlib import import_module

    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


@fault("decomposition", "wrong_result", "mlp.swiglu norm.decoder_block training.mlp", culprit="silu")
def wrong_silu() -> Iterator[None]:
    """silu is decomposed into x·tanh(x)."""
    with decomposed(silu=lambda x: x * torch.tanh(x)):
        yield


@fault("decomposition", "wrong_result", "pointwise.chain mlp.gelu convolution.conv1d", culprit="gelu")
def gelu_always_tanh() -> Iterator[None]:
    """gelu is decomposed into its tanh approximation even where the exact one was asked for."""

    def gelu(x: Any, approximate: str = "none") -> Any:
        return x * 0.5 * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    with decomposed(gelu=gelu):
        yield


@fault("decomposition", "wrong_result", "norm.layer_norm training.layer_norm", culprit="native_layer_norm")
def layer_norm_without_eps() -> Iterator[None]:
    """LayerNorm divides by n - 1."""

    def native_layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        dims = list(range(x.dim() - len(shape), x.dim()))
        variance, mean = torch.var_mean(x, dim=dims, correction=1, keepdim=True)
        rstd = torch.rsqrt(variance + eps)
        out = (x - mean) * rstd
        out = out * weight if weight is not None else out
        return (out + bias if bias is not None else out), mean, rstd

    with decomposed(native_layer_norm=native_layer_norm):
        yield


@fault("decomposition", "wrong_result", "training.linear training.in_place", culprit="threshold_backward")
def wrong_relu_gradient() -> Iterator[None]:
    """The gradient of relu passes where the input is negative."""

    def threshold_backward(grad: Any, x: Any, threshold: Any) -> Any:
        return torch.where(x <= threshold, grad, 0.0)

    with decomposed(threshold_backward=threshold_backward):
        yield


@fault("decomposition", "undecomposed", "pointwise.chain mlp.gelu", culprit="gelu")
def gelu_left_whole() -> Iterator[None]:
    """The decomposition of gelu is missing."""
    with decomposed(gelu=None):
        yield


@fault("decomposition", "undecomposed unfused", "reduction.softmax attention.eager_tapped", culprit="_softmax")
def softmax_left_whole() -> Iterator[None]:
    """The decomposition of softmax is missing."""
    with decomposed(_softmax=None):
        yield


@fault("decomposition", "wrong_metadata wrong_result crash", "norm.decoder_block", culprit="silu")
def silu_forgets_dtype() -> Iterator[None]:
    """silu computes in float32 and does not cast back."""
    with decomposed(silu=lambda x: x.float() / (1 + torch.exp(-x.float()))):
        yield


@fault("decomposition", "wrong_metadata", "edge.channels_last", culprit="sigmoid")
def sigmoid_made_contiguous() -> Iterator[None]:
    """sigmoid is decomposed into ops that do not keep the strides: code generation then gives the caller what the graph says."""
    with decomposed(sigmoid=lambda x: 1 / (1 + torch.exp(-x.contiguous()))):
        yield


@fault("decomposition", "lost_mutation", "mutation.add_input mutation.view_of_input kv_cache.slice_scatter")
def lost_copy_epilogue() -> Iterator[None]:
    """The final copy_ into a mutated input is not traced."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target is aten.copy_.default and node.args[0].op == "placeholder":
                node.replace_all_uses_with(node.args[1])
                gm.graph.erase_node(node)

    with _traced(GRAPH, edit):
        yield


@fault("decomposition", "lost_mutation", "mutation.add_input mutation.two_inputs kv_cache.index_copy")
def mutation_not_noticed() -> Iterator[None]:
    """The analysis of the program does not notice that it writes into an input."""

    def make(original: Any) -> Any:
        def collect(*args: Any, **kwargs: Any) -> Any:
            inner = original(*args, **kwargs)

            def run(*flat: Any) -> Any:
                meta = inner(*flat)
                meta.input_info = [dataclasses.replace(info, mutates_data=False) for info in meta.input_info]
                meta.__post_init__()
                return meta

            return run

        return collect

    with swapped("torch._functorch.aot_autograd:run_functionalized_fw_and_collect_metadata", make):
        yield


@fault("decomposition", "lost_alias", "views.transposed_input views.view_beside_result")
def alias_not_noticed() -> Iterator[None]:
    """The analysis of the program does not notice that an output is a view of an input: the trace computes it anew."""
    from torch._functorch._aot_autograd.schemas import OutputType

    def make(original: Any) -> Any:
        def collect(*args: Any, **kwargs: Any) -> Any:
            inner = original(*args, **kwargs)

            def run(*flat: Any) -> Any:
                meta = inner(*flat)
                meta.output_info = [
                    dataclasses.replace(info, output_type=OutputType.non_alias, base_idx=None)
                    if info.output_type is OutputType.alias_of_input
                    else info
                    for info in meta.output_info
                ]
                meta.__post_init__()
                return meta

            return run

        return collect

    def edit(gm: Any) -> None:
        output = next(iter(reversed(gm.graph.nodes)))
        values = list(output.args[0])
        for index, value in enumerate(values):
            if (
                value is not None
                and value.op == "call_function"
                and value.args
                and value.args[0] in gm.graph.find_nodes(op="placeholder")
            ):
                for _ in range(2):  # a plain copy would be taken for an op without effect, and the view come back
                    with gm.graph.inserting_before(output):
                        values[index] = gm.graph.call_function(aten.neg.default, (values[index],))
                    values[index].meta = dict(value.meta)
        output.args = (tuple(values),)

    with (
        swapped("torch._functorch.aot_autograd:run_functionalized_fw_and_collect_metadata", make),
        _traced(GRAPH, edit),
    ):
        yield


@fault("decomposition", "metadata_loss", "pointwise.chain reduction.row_sum")
def traced_without_metadata() -> Iterator[None]:
    """Nodes of the traced graph do not say their shape and dtype."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if node.op == "call_function":
                node.meta.pop("val", None)

    with _traced(GRAPH, edit):
        yield


@fault("decomposition", "undecomposed", "mutation.add_input mutation.two_inputs")
def not_functionalized() -> Iterator[None]:
    """An op of the traced graph writes into its argument."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if node.target is aten.mul.Tensor and node.args[0].op != "placeholder":
                node.target = aten.mul_.Tensor

    with _traced(GRAPH, edit):
        yield


@fault("decomposition", "wrong_result", "training.mlp training.linear training.detached_output")
def partitioner_swaps_gradients() -> Iterator[None]:
    """The backward graph, cut out of the joint one, computes a difference where a product belongs."""

    def make(original: Any) -> Any:
        def extract(*args: Any, **kwargs: Any) -> Any:
            forward, backward = original(*args, **kwargs)
            retarget(backward, aten.mul.Tensor, aten.sub.Tensor, most=1)
            return forward, backward

        return extract

    with swapped("torch._functorch.partitioners:_extract_fwd_bwd_modules", make):
        yield


@fault("decomposition", "wrong_result", "random.bernoulli random.dropout", culprit="bernoulli")
def bernoulli_inverted() -> Iterator[None]:
    """bernoulli draws with 1 - p, dropout keeps what it should drop."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target in (aten.bernoulli.default, aten.rand.default, aten.rand_like.default, aten.bernoulli.p):
                with gm.graph.inserting_after(node):
                    negative = gm.graph.call_function(aten.neg.default, (node,))
                with gm.graph.inserting_after(negative):
                    flipped = gm.graph.call_function(aten.add.Tensor, (negative, 1))
                negative.meta, flipped.meta = dict(node.meta), dict(node.meta)
                node.replace_all_uses_with(flipped, delete_user_cb=lambda user, n=negative: user is not n)
            elif node.target is aten.native_dropout.default:
                node.args = (node.args[0], 1 - node.args[1], node.args[2])

    with _traced(GRAPH, edit):
        yield


@fault("decomposition", "wrong_metadata wrong_result", "training.detached_output training.linear", also="runtime")
def output_loses_its_gradient() -> Iterator[None]:
    """The analysis of the program says of every output that it needs no gradient."""

    def make(original: Any) -> Any:
        def collect(*args: Any, **kwargs: Any) -> Any:
            inner = original(*args, **kwargs)

            def run(*inputs: Any) -> Any:
                found = inner(*inputs)
                found.output_info = [dataclasses.replace(info, requires_grad=False) for info in found.output_info]
                return found

            return run

        return collect

    with swapped("torch._functorch.aot_autograd:run_functionalized_fw_and_collect_metadata", make):
        yield


@fault("decomposition", "wrong_result lost_mutation crash", "mutation.aliased_inputs", also="runtime")
def aliased_inputs_not_merged() -> Iterator[None]:
    """Two inputs of one storage are taken for two storages."""

    def make(original: Any) -> Any:
        def merge(aot_config: Any, inputs: Any, descs: Any, *args: Any, **kwargs: Any) -> Any:
            return inputs, descs, None

        return merge

    with swapped("torch._functorch._aot_autograd.runtime_wrappers:merge_view_inputs", make):
        yield


@fault("decomposition", "wrong_result", "training.mlp training.linear training.in_place", also="postgrad")
def gradient_of_the_second_use_lost() -> Iterator[None]:
    """Where a value is used twice, only the gradient of one use comes back."""

    def edit(gm: Any) -> None:
        backward = False
        for node in list(gm.graph.nodes):
            backward |= node.op == "placeholder" and "tangents" in node.name
            both = node.target is aten.add.Tensor and all(isinstance(a, torch.fx.Node) for a in node.args)
            if backward and both and node.args[0].meta["val"].shape == node.meta["val"].shape:
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)

    with _traced(JOINT, edit):
        yield


@fault("decomposition", "lost_mutation wrong_result", "mutation.only_effect", culprit="lerp")
def lerp_from_the_other_end() -> Iterator[None]:
    """One overload of lerp is decomposed with its ends swapped."""
    with decomposed(lerp__Scalar=lambda start, end, weight: end + weight * (start - end)):
        yield
