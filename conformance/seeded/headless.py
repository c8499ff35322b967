"""Faults of the Triton code generator, seen for a GPU that is only described."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.seeded.decomposition import decomposed
from conformance.seeded.fault import fault, find, swapped

TRITON = "torch._inductor.codegen.triton"


@contextmanager
def _written(op: str, write: Callable[[Any], str]) -> Iterator[None]:
    """Another text for an op. Its class takes copies of what it inherits when it is first used, so let it do that before."""
    owner, _ = find(f"{TRITON}:TritonKernelOverrides.{op}")
    find("torch._inductor.lowering:lowerings")
    if route := getattr(owner, "_setup_libdevice_routing", None):
        route()
    with swapped(f"{TRITON}:TritonKernelOverrides.{op}", lambda _: write):
        yield


@fault("codegen", "wrong_result", "pointwise.shared_producer", target="sm_90", culprit="cos")
def triton_cos_as_sin() -> Iterator[None]:
    """cos becomes sin in Triton."""
    with _written("cos", lambda x: f"tl_math.sin({x})"):
        yield


@fault("fusion", "unfused", "norm.layer_norm", target="sm_90")
def triton_fusion_off() -> Iterator[None]:
    """The scheduler fuses nothing, for a GPU."""
    with swapped("torch._inductor.scheduler:Scheduler.fuse_nodes", lambda _: lambda self, nodes: nodes):
        yield


@fault("codegen", "wrong_result", "reduction.extrema", target="sm_90", culprit="max")
def triton_mask_dropped() -> Iterator[None]:
    """Lanes beyond the end of a row take part in its reduction."""

    def make(original: Any) -> Any:
        def reduction(self: Any, *args: Any, **kwargs: Any) -> Any:
            with swapped(f"{TRITON}:TritonKernelOverrides.where", lambda _: lambda condition, value, other: value):
                return original(self, *args, **kwargs)

        return reduction

    with swapped(f"{TRITON}:TritonKernel.reduction", make):
        yield


@fault("codegen", "wrong_result", "norm.rmsnorm norm.layer_norm", target="sm_90", culprit="rsqrt")
def triton_rsqrt_as_sqrt() -> Iterator[None]:
    """rsqrt becomes sqrt in Triton."""
    with _written("rsqrt", lambda x: f"libdevice.sqrt({x})"):
        yield


@fault("codegen", "bad_code crash", "reduction.softmax pointwise.shared_producer", target="sm_90", culprit="exp")
def triton_code_does_not_compile() -> Iterator[None]:
    """exp becomes a call of a function that Triton does not have."""
    with _written("exp", lambda x: f"tl_math.no_such_function({x})"):
        yield


@fault("decomposition", "wrong_result", "mlp.swiglu", target="sm_90", culprit="silu")
def headless_wrong_silu() -> Iterator[None]:
    """silu is decomposed into twice what it is, for a GPU."""
    with decomposed(silu=lambda x: 2 * x * torch.sigmoid(x)):
        yield
