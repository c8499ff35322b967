"""Faults of lowering's inlining and of the scheduler: what is put into one kernel, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from conformance.seeded.fault import entries, fault, swapped

aten = torch.ops.aten
SCHEDULER = "torch._inductor.scheduler:Scheduler"


@fault("fusion", "unfused", "norm.layer_norm reduction.softmax")
def fusion_off() -> Iterator[None]:
    """The scheduler fuses nothing."""
    with swapped(f"{SCHEDULER}.fuse_nodes", lambda _: lambda self, nodes: nodes):
        yield


@fault("fusion", "unfused", "reduction.softmax norm.layer_norm")
def no_vertical_fusion() -> Iterator[None]:
    """A consumer is never fused with its producer."""
    with swapped(f"{SCHEDULER}.can_fuse_vertical", lambda _: lambda self, node1, node2, **_kw: False):
        yield


@fault("fusion", "unfused", "edge.nan_inf mutation.two_inputs")
def no_horizontal_fusion() -> Iterator[None]:
    """Kernels that read the same data are never fused."""
    with swapped(
        "torch._inductor.codegen.cpp:CppScheduling.can_fuse_horizontal", lambda _: lambda self, node1, node2: False
    ):
        yield


@fault("fusion", "overfused wrong_result crash", "reduction.two_axes training.layer_norm", also="codegen")
def fuses_across_a_reduction() -> Iterator[None]:
    """A consumer that needs all of a reduction is fused into its loop."""
    import contextlib

    with contextlib.ExitStack() as stack:
        stack.enter_context(swapped(f"{SCHEDULER}.can_fuse_vertical", lambda _: lambda self, node1, node2, **_kw: True))
        path = "torch._inductor.codegen.cpp:CppScheduling.can_fuse_vertical"
        stack.enter_context(swapped(path, lambda _: lambda self, node1, node2: node1.group == node2.group))
        yield


@fault("fusion", "unfused", "pointwise.shared_producer reduction.column_mean")
def exp_goes_to_the_library() -> Iterator[None]:
    """exp has no lowering of its own any more and calls ATen."""
    from torch._inductor.lowering import fallback_handler, lowerings

    with entries(lowerings) as known:
        known[aten.exp.default] = known[aten.exp] = fallback_handler(aten.exp.default, add_to_fallback_set=False)
        yield


@fault("fusion", "unfused overfused", "matmul.linear_bias_relu matmul.mm_add_bias training.linear")
def matmul_in_loops() -> Iterator[None]:
    """A matrix product is no longer given to the library: it is written out as a multiplication and a sum."""
    from torch._inductor.lowering import lowerings

    def unpacked(a: Any, b: Any) -> Any:
        product = lowerings[aten.mul.Tensor](
            lowerings[aten.unsqueeze.default](a, 2), lowerings[aten.unsqueeze.default](b, 0)
        )
        return lowerings[aten.sum.dim_IntList](product, [1])

    with entries(lowerings) as known:
        known[aten.mm.default] = unpacked
        known[aten.addmm.default] = lambda bias, a, b, **_: lowerings[aten.add.Tensor](bias, unpacked(a, b))
        yield


@fault("fusion", "lost_mutation wrong_result crash", "mutation.add_input mutation.only_effect", also="codegen")
def write_taken_for_dead() -> Iterator[None]:
    """The scheduler takes the write into an input for dead code."""

    def make(original: Any) -> Any:
        def dead_node_elimination(self: Any) -> None:
            original(self)
            dead = [node for node in self.nodes if any(b.get_mutations() for b in node.get_outputs())]
            self.nodes = [node for node in self.nodes if node not in dead]
            for node in dead:
                for name in node.get_buffer_names():
                    torch._inductor.virtualized.V.graph.removed_buffers.add(name)

        return dead_node_elimination

    with swapped(f"{SCHEDULER}.dead_node_elimination", make):
        yield


@fault(
    "fusion",
    "wrong_result lost_mutation crash",
    "mutation.read_then_write kv_cache.streaming training.mutated_beside",
    also="codegen",
)
def write_before_read() -> Iterator[None]:
    """The scheduler puts the writes into inputs before everything else."""

    def make(original: Any) -> Any:
        def topological_sort_schedule(self: Any, nodes: Any) -> Any:
            ordered = original(self, nodes)
            return sorted(ordered, key=lambda node: not any(b.get_mutations() for b in node.get_outputs()))

        return topological_sort_schedule

    with swapped(f"{SCHEDULER}.topological_sort_schedule", make):
        yield


@fault("fusion", "wrong_result", "edge.nan_inf pointwise.shared_producer mutation.two_inputs", culprit="fusion group")
def fused_group_loses_a_member() -> Iterator[None]:
    """Of the ops that were fused into one kernel the last is not computed."""

    def make(original: Any) -> Any:
        def codegen_nodes(self: Any, nodes: Any) -> None:
            original(self, nodes[:-1] if len(nodes) > 1 else nodes)
            for node in nodes[1:][-1:]:
                node.mark_run()  # its buffer is there all the same

        return codegen_nodes

    with swapped("torch._inductor.codegen.cpp:CppKernelProxy.codegen_nodes", make):
        yield
