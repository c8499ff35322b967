"""Faults of a GPU's runtime: recordings that replay the wrong thing, streams that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from conformance.seeded.fault import fault, swapped
from conformance.seeded.runtime import called, outputs_in_one_buffer

NODE = "torch._inductor.cudagraph_trees:CUDAGraphNode"
RECORDED = {"backend": "inductor_cudagraphs", "target": "cuda"}


@fault("runtime", "wrong_result replay_mismatch", "pointwise.chain norm.layer_norm", **RECORDED)
def stale_static_input() -> Iterator[None]:
    """A replay does not copy the new inputs to where the recording reads them."""

    def make(original: Any) -> Any:
        def _copy_inputs_and_remove_from_src(self: Any, dsts: list[Any], srcs: list[Any]) -> None:
            for index in self.non_static_input_idx:
                if isinstance(srcs[index], torch.Tensor):
                    srcs[index] = None

        return _copy_inputs_and_remove_from_src

    with swapped(f"{NODE}._copy_inputs_and_remove_from_src", make):
        yield


@fault("runtime", "wrong_result replay_mismatch stale_output", "pointwise.chain reduction.softmax", **RECORDED)
def recording_not_replayed() -> Iterator[None]:
    """From the second replay on nothing is launched: the outputs are those of the replay before."""
    replays: dict[int, int] = {}

    def make(original: Any) -> Any:
        def run_graph(self: Any) -> None:
            replays[id(self)] = replays.get(id(self), 0) + 1
            if replays[id(self)] == 1:
                original(self)

        return run_graph

    with swapped(f"{NODE}.run_graph", make):
        yield


@fault(
    "runtime", "lost_mutation wrong_result replay_mismatch", "mutation.counter mutation.running_statistics", **RECORDED
)
def mutation_dropped_on_replay() -> Iterator[None]:
    """What a replay writes to the module's own buffers is taken back."""

    def make(original: Any) -> Any:
        def run(self: Any, new_inputs: list[Any]) -> Any:
            held = [new_inputs[i] for i in self.static_input_idxs if isinstance(new_inputs[i], torch.Tensor)]
            before = [tensor.detach().clone() for tensor in held]
            outputs = original(self, new_inputs)
            with torch.no_grad():
                for tensor, value in zip(held, before, strict=True):
                    tensor.copy_(value)
            return outputs

        return run

    with swapped(f"{NODE}.run", make):
        yield


@fault("runtime", "stale_output", "pointwise.chain norm.layer_norm", **RECORDED)
def overwritten_within_a_step() -> Iterator[None]:
    """A second call in the same step writes over the first one's outputs."""
    manager = "torch._inductor.cudagraph_trees:CUDAGraphTreeManager"
    with swapped(f"{manager}.can_start_new_generation", lambda original: lambda self: True):
        yield


@fault("runtime", "stale_output", "pointwise.chain reduction.softmax", target="cuda")
def overwritten_output() -> Iterator[None]:
    """Every call writes its outputs into the storage of the first call's, on the device."""
    with outputs_in_one_buffer.inject():
        yield


@fault("runtime", "wrong_result", "pointwise.chain matmul.mm_add_bias", target="cuda")
def missing_stream_sync() -> Iterator[None]:
    """The program runs on a stream of its own, and nobody waits: not it for its inputs, not the caller for its outputs."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        with torch.cuda.stream(torch.cuda.Stream()):
            return call(inputs)

    with called(change):
        yield


@fault("runtime", "wrong_result", "pointwise.chain reduction.softmax", target="cuda")
def launched_on_the_usual_stream() -> Iterator[None]:
    """The program is put on the default stream, whichever stream the caller is on."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        with torch.cuda.stream(torch.cuda.default_stream()):
            return call(inputs)

    with called(change):
        yield
