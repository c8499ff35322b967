"""Faults of AutoDeploy: its export, its transforms, the compile backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from conformance.seeded import fault as library
from conformance.seeded.fault import retarget

aten = torch.ops.aten


def fault(stage: str, kinds: str, on: str, also: str = "", culprit: str = "") -> Any:
    return library.fault(stage, kinds, on, backend="autodeploy", also=also, culprit=culprit)


def _loaded() -> Any:
    from conformance.backends.autodeploy.loader import load

    return load()


Apply = Callable[..., Any]


@contextmanager
def _applied(name: str, make: Callable[[Apply], Apply]) -> Iterator[None]:
    """Put `make(original)` in the place of what one transform does to a graph."""
    found = _loaded().seam.registry
    if not found.has(name):
        raise library.UsageError(f"cannot seed this fault here: AutoDeploy has no transform {name} in this version")
    owner = found.get(name)
    with patch.object(owner, "_apply", make(owner._apply)):
        yield


def _then(edit: Callable[[Any, set[Any]], None]) -> Callable[[Apply], Apply]:
    """After the transform: `edit(graph module, nodes that it made)`."""

    def make(original: Apply) -> Apply:
        def apply(self: Any, gm: Any, *args: Any) -> Any:
            before = set(gm.graph.nodes)
            gm, info = original(self, gm, *args)
            edit(gm, {node for node in gm.graph.nodes if node not in before and node.op == "call_function"})
            gm.recompile()
            return gm, info

        return apply

    return make


def _nothing(original: Apply) -> Apply:
    def apply(self: Any, gm: Any, *args: Any) -> Any:
        info = _loaded().seam.info(skipped=False, num_matches=0, is_clean=True, has_valid_shapes=True)
        return gm, info

    return apply


# --------------------------------------------------------------------------------------------- capture


@fault("capture", "wrong_result", "pointwise.chain pointwise.shared_producer")
def ad_exported_wrong_op() -> Iterator[None]:
    """The exported graph adds where the module subtracts."""

    def wrong(proceed: Apply, *args: Any, **kwargs: Any) -> Any:
        gm = proceed(*args, **kwargs)
        retarget(gm, aten.sub.Tensor, aten.add.Tensor)
        return retarget(gm, aten.sin.default, aten.cos.default)

    with _loaded().seam.subscribe(export=wrong):
        yield


@fault("capture", "crash", "pointwise.chain")
def ad_export_raises() -> Iterator[None]:
    """A patch that AutoDeploy applies for its export raises."""

    def broken(proceed: Apply, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("export patch failed")

    with _loaded().seam.subscribe(export=broken):
        yield


# ----------------------------------------------------------------------------------------- post export


@fault("decomposition", "wrong_result lost_alias", "norm.add_rmsnorm pointwise.broadcast", culprit="cleanup_noop_add")
def ad_noop_add_takes_any_add() -> Iterator[None]:
    """The transform that removes additions of nothing removes every addition of two tensors."""

    def edit(gm: Any, made: set[Any]) -> None:
        for node in list(gm.graph.nodes):
            if node.target is aten.add.Tensor and isinstance(node.args[1], torch.fx.Node):
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)

    with _applied("cleanup_noop_add", _then(edit)):
        yield


@fault("decomposition", "crash", "norm.rmsnorm pointwise.chain", culprit="cleanup_noop_slice")
def ad_cleanup_raises() -> Iterator[None]:
    """A transform of the clean-up after export raises."""

    def make(original: Apply) -> Apply:
        def apply(self: Any, gm: Any, *args: Any) -> Any:
            raise RuntimeError("slice of an unknown dim")

        return apply

    with _applied("cleanup_noop_slice", make):
        yield


# ------------------------------------------------------------------------------------- pattern matchers


@fault("postgrad", "match_loss", "norm.rmsnorm norm.add_rmsnorm", culprit="match_rmsnorm_pattern")
def ad_rmsnorm_not_found() -> Iterator[None]:
    """RMSNorm is no longer found."""
    with _applied("match_rmsnorm_pattern", _nothing):
        yield


@fault("postgrad", "match_loss", "norm.decoder_block mlp.swiglu", culprit="match_swiglu_pattern")
def ad_swiglu_not_found() -> Iterator[None]:
    """SwiGLU is no longer found."""
    with _applied("match_swiglu_pattern", _nothing):
        yield


@fault("postgrad", "match_loss", "attention.eager attention.sdpa", culprit="match_sdpa_to_torch_attention")
def ad_attention_not_found() -> Iterator[None]:
    """Attention is no longer found."""
    with _applied("match_sdpa_to_torch_attention", _nothing):
        yield


@fault("postgrad", "match_loss overfused", "norm.rmsnorm", culprit="match_rmsnorm_pattern")
def ad_matches_counted_twice() -> Iterator[None]:
    """A transform reports twice as many matches as it made."""

    def make(original: Apply) -> Apply:
        def apply(self: Any, gm: Any, *args: Any) -> Any:
            gm, info = original(self, gm, *args)
            return gm, info.model_copy(update={"num_matches": 2 * info.num_matches})

        return apply

    with _applied("match_rmsnorm_pattern", make):
        yield


@fault("postgrad", "metadata_loss", "norm.decoder_block mlp.swiglu", culprit="match_swiglu_pattern")
def ad_match_drops_metadata() -> Iterator[None]:
    """The node that stands for an SwiGLU does not say its shape and dtype."""

    def edit(gm: Any, made: set[Any]) -> None:
        for node in made:
            node.meta.pop("val", None)

    with _applied("match_swiglu_pattern", _then(edit)):
        yield


@fault("postgrad", "metadata_loss", "norm.decoder_block mlp.swiglu", culprit="match_swiglu_pattern")
def ad_match_lies_about_dtype() -> Iterator[None]:
    """The node that stands for an SwiGLU says another dtype than it gives."""

    def edit(gm: Any, made: set[Any]) -> None:
        for node in made:
            if isinstance(node.meta.get("val"), torch.Tensor):
                node.meta["val"] = node.meta["val"].to(torch.float64)

    with _applied("match_swiglu_pattern", _then(edit)):
        yield


@fault("postgrad", "crash", "norm.rmsnorm", culprit="match_rmsnorm_pattern")
def ad_transform_raises() -> Iterator[None]:
    """The transform that looks for RMSNorm raises; where AutoDeploy tolerates it, it goes on without."""

    def make(original: Apply) -> Apply:
        def apply(self: Any, gm: Any, *args: Any) -> Any:
            raise RuntimeError("pattern could not be traced")

        return apply

    with _applied("match_rmsnorm_pattern", make):
        yield


@fault("postgrad", "wrong_result", "norm.rmsnorm norm.add_rmsnorm", culprit="match_rmsnorm_pattern")
def ad_match_forgets_eps() -> Iterator[None]:
    """RMSNorm is found, and replaced by one with another epsilon."""

    def edit(gm: Any, made: set[Any]) -> None:
        for node in made:
            node.args = tuple(0.5 if isinstance(a, float) else a for a in node.args)
            node.kwargs = {key: 0.5 if isinstance(value, float) else value for key, value in node.kwargs.items()}

    with _applied("match_rmsnorm_pattern", _then(edit)):
        yield


# ---------------------------------------------------------------------------------------------- fusion


@fault("fusion", "match_loss", "norm.add_rmsnorm norm.decoder_block", culprit="fuse_add_rms_norm")
def ad_add_rmsnorm_not_fused() -> Iterator[None]:
    """A residual addition and the norm after it are no longer fused."""
    with _applied("fuse_add_rms_norm", _nothing):
        yield


@fault("fusion", "wrong_result", "norm.rmsnorm norm.decoder_block", culprit="fuse_rmsnorm")
def ad_fused_norm_loses_its_weight() -> Iterator[None]:
    """The fused RMSNorm reads a weight that is not its own."""

    def edit(gm: Any, made: set[Any]) -> None:
        for node in made:
            weight = next((a for a in node.args[1:] if isinstance(a, torch.fx.Node)), None)
            if weight is not None:
                with gm.graph.inserting_before(node):
                    other = gm.graph.call_function(aten.neg.default, (weight,))
                    other.meta = dict(weight.meta)
                node.replace_input_with(weight, other)

    with _applied("fuse_rmsnorm", _then(edit)):
        yield


@fault("fusion", "crash", "norm.rmsnorm norm.decoder_block", culprit="fuse_rmsnorm")
def ad_fusion_raises() -> Iterator[None]:
    """The transform that chooses a kernel for RMSNorm raises."""

    def make(original: Apply) -> Apply:
        def apply(self: Any, gm: Any, *args: Any) -> Any:
            raise RuntimeError("no kernel for this dtype")

        return apply

    with _applied("fuse_rmsnorm", make):
        yield


# --------------------------------------------------------------------------------------------- runtime


@contextmanager
def _compiled(wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Wrap what the compile backend for the CPU gives."""
    owner = _loaded().seam.compile_backends.get("torch-simple")
    original = owner.compile
    with patch.object(owner, "compile", lambda self: wrap(original(self))):
        yield


@fault("runtime", "wrong_result", "pointwise.chain norm.rmsnorm")
def ad_first_answer_forever() -> Iterator[None]:
    """From the second call on the first call's answer is given again."""

    def wrap(program: Any) -> Any:
        kept: list[Any] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = program(*args, **kwargs)
            kept.append(answer)
            return kept[0]

        return call

    with _compiled(wrap):
        yield


@fault("runtime", "wrong_metadata wrong_result", "pointwise.chain norm.rmsnorm")
def ad_output_changes_dtype() -> Iterator[None]:
    """Outputs come back in another dtype."""

    def wrap(program: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = program(*args, **kwargs)
            return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.double(), answer)

        return call

    with _compiled(wrap):
        yield
