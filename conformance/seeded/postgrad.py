"""Faults of graph passes: pre-grad, joint and post-grad, and the pattern matcher under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.seeded.fault import fault, retarget, swapped

aten = torch.ops.aten
POST = "torch._inductor.fx_passes.post_grad"
JOINT = "torch._inductor.fx_passes.joint_graph"


@contextmanager
def at_the_end_of(path: str, edit: Callable[[Any], None]) -> Iterator[None]:
    """Edit the graph that a pass leaves behind. The pass takes a graph or a graph module."""

    def make(original: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            graph = next(a for a in args if isinstance(a, (torch.fx.Graph, torch.fx.GraphModule)))
            gm = graph if isinstance(graph, torch.fx.GraphModule) else graph.owning_module
            edit(gm)
            gm.recompile()  # type: ignore[union-attr]
            return result

        return run

    with swapped(path, make):
        yield


@fault("postgrad", "match_loss", "attention.eager matmul.mm_add_bias")
def pattern_matcher_off() -> Iterator[None]:
    """The pattern matcher finds nothing any more."""
    with swapped("torch._inductor.pattern_matcher:PatternMatcherPass.apply", lambda _: lambda self, gm: 0):
        yield


@fault("postgrad", "match_loss", "attention.eager")
def no_attention_patterns() -> Iterator[None]:
    """The first set of joint-graph patterns, attention among them, is never tried."""
    with swapped(f"{JOINT}:patterns.apply", lambda _: lambda *args: 0):
        yield


@fault("postgrad", "match_loss", "matmul.mm_add_bias")
def addmm_not_found() -> Iterator[None]:
    """A product and a bias are no longer put together into addmm."""
    kept = [(entry, entry.extra_check) for entry in _addmm_entries()]
    for entry, _ in kept:
        entry.extra_check = lambda match: False
    try:
        yield
    finally:
        for entry, check in kept:
            entry.extra_check = check


def _addmm_entries() -> list[Any]:
    from torch._inductor.fx_passes import post_grad

    found = []
    for stage in post_grad.pass_patterns:
        for listed in stage.patterns.values():
            found += [e for e in listed if getattr(e.extra_check, "__name__", "") == "is_valid_addmm_fusion"]
    return list({id(e): e for e in found}.values())


@fault(
    "postgrad", "wrong_result", "pointwise.chain reduction.row_sum pointwise.broadcast", culprit="reorder_for_locality"
)
def locality_pass_flips_sign() -> Iterator[None]:
    """The pass that moves ops closer together turns a subtraction (or an addition) around."""

    def edit(gm: Any) -> None:
        retarget(gm, aten.sub.Tensor, aten.add.Tensor)

    with at_the_end_of(f"{POST}:reorder_for_locality", edit):
        yield


@fault("postgrad", "wrong_result", "mlp.gelu matmul.linear_bias_relu", culprit="remove_noop_ops")
def noop_pass_eats_relu() -> Iterator[None]:
    """The pass that removes ops without effect takes relu and tanh for such."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target in (aten.relu.default, aten.tanh.default):
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)

    with at_the_end_of(f"{POST}:remove_noop_ops", edit):
        yield


@fault("postgrad", "wrong_result", "pointwise.chain pointwise.shared_producer", culprit="joint")
def joint_pass_changes_constant() -> Iterator[None]:
    """A joint-graph pass rounds constants."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if node.target is aten.mul.Tensor and isinstance(node.args[1], float):
                node.args = (node.args[0], float(round(node.args[1])) or 1.0)

    with at_the_end_of(f"{JOINT}:canonicalize_aten_ir_passes", edit):
        yield


@fault("postgrad", "wrong_result", "training.mlp training.linear", culprit="joint")
def joint_pass_breaks_training() -> Iterator[None]:
    """A joint-graph pass takes a sigmoid for a tanh, forward and backward alike."""

    def edit(gm: Any) -> None:
        retarget(gm, aten.sigmoid.default, aten.tanh.default)
        retarget(gm, aten.relu.default, aten.abs.default)

    with at_the_end_of(f"{JOINT}:canonicalize_aten_ir_passes", edit):
        yield


@fault("postgrad", "wrong_result", "pointwise.chain convolution.conv_bn_relu", also="decomposition", culprit="pre_grad")
def pre_grad_pass_changes_result() -> Iterator[None]:
    """A pre-grad pass replaces tanh by sigmoid and relu by abs."""

    def edit(gm: Any) -> None:
        retarget(gm, torch.tanh, torch.sigmoid)
        retarget(gm, torch.nn.functional.relu, torch.abs)

    with at_the_end_of("torch._inductor.compile_fx:pre_grad_passes", edit):
        yield


@fault("postgrad", "metadata_loss", "pointwise.chain norm.layer_norm")
def pass_drops_metadata() -> Iterator[None]:
    """A pass makes a node that does not say its shape and dtype."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target in (aten.add.Tensor, aten.mul.Tensor):
                node.meta.pop("val", None)

    with at_the_end_of(f"{POST}:decompose_auto_functionalized", edit):
        yield


@fault("postgrad", "lost_mutation", "mutation.add_input kv_cache.slice_scatter mutation.only_effect")
def reinplace_drops_write() -> Iterator[None]:
    """The pass that makes writes in place drops the write."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if node.target is aten.copy_.default:
                node.replace_all_uses_with(node.args[1])
                gm.graph.erase_node(node)

    with at_the_end_of(f"{POST}:reinplace_inplaceable_ops", edit):
        yield


@fault("postgrad", "wrong_result lost_mutation", "mutation.two_inputs mutation.read_then_write training.mutated_beside")
def reinplace_too_early() -> Iterator[None]:
    """The write into an input is moved before the last read of its old value."""

    def edit(gm: Any) -> None:
        for node in list(gm.graph.nodes):
            if (
                node.target is aten.copy_.default
                and node.args[0].op == "placeholder"
                and isinstance(node.args[1], torch.fx.Node)
            ):
                node.args[1].append(node)
                for user in list(node.args[0].users):
                    if user is not node and user > node:
                        user.replace_input_with(node.args[0], node)
        for node in list(gm.graph.nodes):  # what is read after the write is the new value
            if node.target is aten.copy_.default and node.args[0].op == "placeholder":
                for later in list(gm.graph.nodes):
                    if (
                        later > node
                        and later.op == "call_function"
                        and node.args[0] in later.all_input_nodes
                        and later is not node
                    ):
                        later.replace_input_with(node.args[0], node)

    with at_the_end_of(f"{POST}:reinplace_inplaceable_ops", edit):
        yield


@fault(
    "postgrad", "wrong_result", "edge.constant moe.expert_loop views.split_cat", culprit="constant_fold_uniform_value"
)
def constant_folded_wrongly() -> Iterator[None]:
    """Constant folding folds to another constant."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if (
                node.target is aten.full.default
                and isinstance(node.args[1], (int, float))
                and not isinstance(node.args[1], bool)
            ):
                node.args = (node.args[0], node.args[1] + 1)

    with at_the_end_of(f"{JOINT}:constant_fold_uniform_value", edit):
        yield


@fault("postgrad", "wrong_result", "attention.eager", culprit="sfdp")
def attention_pattern_loses_scale() -> Iterator[None]:
    """Attention is found, and replaced by one with another scale."""

    def make(original: Any) -> Any:
        def apply(self: Any, match: Any, graph: Any, node: Any) -> None:
            original(self, match, graph, node)
            for new in graph.nodes:
                if "scaled_dot_product" in str(new.target):
                    new.kwargs = {**new.kwargs, "scale": 1.0}

        return apply

    with swapped("torch._inductor.pattern_matcher:ReplacementPatternEntry.apply", make):
        yield
