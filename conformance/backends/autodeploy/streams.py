"""AutoDeploy's multi-stream transforms, over a graph that is otherwise done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import torch
from torch import fx

from conformance.backends.autodeploy import graph
from conformance.backends.autodeploy.passes import Passes, PassResult

TRANSFORMS = ("multi_stream_moe", "multi_stream_mla_attn", "multi_stream_gemm")
PLAIN_LINEARS = ("aten.linear", "auto_deploy.torch_linear_simple")
PLAIN_EXPERTS = "torch_moe"
BUILT_EXPERTS = (  # what the transform looks for; all but one need the compiled library
    "trtllm_moe_fused",
    "triton_moe_fused",
    "trtllm_quant_fp8_moe_fused",
    "trtllm_quant_nvfp4_moe_fused",
    "trtllm_nvfp4_trtllm_gen_moe_fused",
    "trtllm_quant_finegrained_fp8_moe_fused",
)


def multi_streamed(passes: Passes, gm: fx.GraphModule) -> tuple[fx.GraphModule, list[PassResult]]:
    """A copy of the graph with work on a second stream, held together by events, and what each transform did.

    They are off in default.yaml. The copy has nothing of a transform that cannot run here, or that failed."""
    twin, results = graph.copied(gm), []
    for name in TRANSFORMS:
        if passes.registry.has(name):
            with no_streams_made(passes), PLAINLY.get(name, nullcontext)(passes):
                twin, (result,) = passes.run(twin, {name: {"stage": "compile", "enabled": True}})
            results.append(result)
    return twin, results


@contextmanager
def no_streams_made(passes: Passes) -> Iterator[None]:
    """Without a GPU the graph is made and looked at, not run: its device passes for one that has its streams."""
    table = passes.loaded.seam
    with ExitStack() as stack:
        if not torch.cuda.is_available() and table.has("devices_with_streams"):
            stack.enter_context(table.replace(devices_with_streams=[0]))
        yield


@contextmanager
def plain_linears(passes: Passes) -> Iterator[None]:
    """Its list of products to run side by side has quantized ones only and says to extend it: plain ones are added."""
    table = passes.loaded.seam
    with passes.loaded.active():
        added = [op for name in PLAIN_LINEARS if (op := _op(name)) is not None]
    with ExitStack() as stack:
        if table.has("linears_side_by_side"):
            stack.enter_context(table.replace(linears_side_by_side=[*table.linears_side_by_side, *added]))
        yield


@contextmanager
def plain_experts(passes: Passes) -> Iterator[None]:
    """Its list of experts names ops that are not there without the compiled library: the plain op stands for these."""
    with passes.loaded.active():
        space = torch.ops.auto_deploy
        missing = [name for name in BUILT_EXPERTS if _op(f"auto_deploy.{name}") is None]
        for name in missing:
            setattr(space, name, getattr(space, PLAIN_EXPERTS))
    try:
        yield
    finally:
        for name in missing:
            delattr(space, name)


PLAINLY = {"multi_stream_gemm": plain_linears, "multi_stream_moe": plain_experts}


def _op(name: str) -> object | None:
    space, _, packet = name.partition(".")
    return getattr(getattr(torch.ops, space), packet, None)
