"""Faults of the Triton code generator, seen for a GPU that is only described."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.seeded.fault import fault, swapped

TRITON = "torch._inductor.codegen.triton"


@fault("codegen", "wrong_result", "pointwise.shared_producer", target="sm_90", culprit="cos")
def triton_cos_as_sin() -> Iterator[None]:
    """cos becomes sin in Triton."""
    with swapped(f"{TRITON}:TritonOverrides.cos", lambda _: lambda x: f"tl_math.sin({x})"):
        yield


@fault("fusion", "unfused", "norm.layer_norm", target="sm_90")
def triton_fusion_off() -> Iterator[None]:
    """The scheduler fuses nothing, for a GPU."""
    with swapped("torch._inductor.scheduler:Scheduler.fuse_nodes", lambda _: lambda self, nodes: nodes):
        yield
