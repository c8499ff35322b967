"""Faults around the compiled program: what its caller sees of outputs, inputs and storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.seeded.fault import fault, swapped

CALL = "torch._inductor.output_code:CompiledFxGraph.__call__"


@contextmanager
def called(change: Callable[[Any, Any, list[Any]], Any]) -> Iterator[None]:
    """`change(program, call, inputs)` in the place of every call of a compiled graph."""

    def make(original: Any) -> Any:
        def __call__(self: Any, inputs: Any) -> Any:
            return change(self, lambda values: original(self, values), list(inputs))

        return __call__

    with swapped(CALL, make):
        yield


@fault("runtime", "stale_output", "pointwise.chain reduction.softmax")
def outputs_in_one_buffer() -> Iterator[None]:
    """Every call writes its outputs into the storage of the first call's."""
    kept: dict[int, list[Any]] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = list(call(inputs))
        first = kept.setdefault(id(program), [program, outputs])[1]
        for index, (old, new) in enumerate(zip(first, outputs, strict=True)):
            if isinstance(new, torch.Tensor) and old is not new and old.shape == new.shape:
                old.copy_(new)
                outputs[index] = old
        return tuple(outputs)

    with called(change):
        yield


@fault("runtime", "wrong_result stale_output replay_mismatch", "pointwise.chain norm.layer_norm")
def first_answer_forever() -> Iterator[None]:
    """From the second call on the first call's answer is given again."""
    kept: dict[int, list[Any]] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        first = kept.setdefault(
            id(program), [program, [o.clone() if isinstance(o, torch.Tensor) else o for o in outputs]]
        )[1]
        both = zip(first, outputs, strict=True)
        return tuple(
            old.clone() if isinstance(new, torch.Tensor) and old.shape == new.shape else new for old, new in both
        )

    with called(change):
        yield


@fault("runtime", "lost_mutation", "mutation.add_input kv_cache.slice_scatter mutation.only_effect")
def inputs_copied_before_the_call() -> Iterator[None]:
    """The program gets copies of its inputs, so that nobody sees what it writes."""
    with called(lambda program, call, inputs: call([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])):
        yield


@fault("runtime", "wrong_result wrong_metadata lost_alias", "pointwise.shared_producer matmul.mm_two_consumers")
def outputs_reversed() -> Iterator[None]:
    """The program's outputs come in the reverse order."""
    with called(lambda program, call, inputs: tuple(reversed(call(inputs)))):
        yield


@fault("runtime", "wrong_metadata", "pointwise.chain dtypes.bf16")
def output_changes_dtype() -> Iterator[None]:
    """Floating-point outputs come back in another dtype."""

    def widened(x: Any) -> Any:
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() and not x.requires_grad else x

    with called(lambda program, call, inputs: tuple(map(widened, call(inputs)))):
        yield


@fault("runtime", "lost_alias", "views.transposed_input views.view_beside_result")
def alias_returned_as_copy() -> Iterator[None]:
    """Where an output is a view of an input, the caller gets a copy."""

    def make(original: Any) -> Any:
        return lambda *args, **kwargs: original(*args, **kwargs).clone()

    with swapped("torch._functorch._aot_autograd.runtime_wrappers:gen_alias_from_base", make):
        yield


@fault("runtime", "wrong_result", "training.linear training.layer_norm")
def gradients_doubled() -> Iterator[None]:
    """The backward's answer comes twice as large."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        if not program.fx_kwargs.get("is_backward"):
            return outputs
        return tuple(o * 2 if isinstance(o, torch.Tensor) else o for o in outputs)

    with called(change):
        yield


@fault("runtime", "wrong_result", "pointwise.chain edge.layouts")
def last_element_overwritten() -> Iterator[None]:
    """A stray write changes the last element of every output."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        for output in outputs:
            if isinstance(output, torch.Tensor) and output.numel() and output.is_floating_point():
                output.view(-1)[-1:].fill_(7.0) if output.is_contiguous() else None
        return outputs

    with called(change):
        yield


@fault("runtime", "wrong_result", "random.two_draws random.dropout")
def random_state_rewound() -> Iterator[None]:
    """After a call the generator is where it was before: the next call draws the same."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        state = torch.get_rng_state()
        try:
            return call(inputs)
        finally:
            torch.set_rng_state(state)

    with called(change):
        yield


@fault("runtime", "lost_mutation", "mutation.add_input mutation.two_inputs")
def writes_only_once() -> Iterator[None]:
    """A program that writes into its inputs does so at the first call only."""
    seen: dict[int, Any] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        if seen.setdefault(id(program), [program, 0])[1]:
            inputs = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        seen[id(program)][1] += 1
        return call(inputs)

    with called(change):
        yield


@fault("runtime", "wrong_metadata", "edge.channels_last")
def outputs_made_contiguous() -> Iterator[None]:
    """Outputs are copied into contiguous tensors on their way to the caller."""
    with called(
        lambda program, call, inputs: tuple(o.contiguous() if isinstance(o, torch.Tensor) else o for o in call(inputs))
    ):
        yield


@fault("runtime", "stale_output", "pointwise.chain reduction.row_sum")
def outputs_in_two_buffers() -> Iterator[None]:
    """Outputs go into two sets of buffers in turn: every call overwrites those of the last but one."""
    kept: dict[int, list[Any]] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        rings = kept.setdefault(id(program), [])
        if len(rings) < 2:
            rings.append(list(outputs))
            return outputs
        rings.reverse()
        for old, new in zip(rings[1], outputs, strict=True):
            if isinstance(new, torch.Tensor) and old.shape == new.shape:
                old.copy_(new)
        return type(outputs)(rings[1])

    with called(change):
        yield


@fault("runtime", "wrong_result lost_alias wrong_metadata", "views.view_beside_result")
def view_of_an_input_without_its_offset() -> Iterator[None]:
    """A view of an input is made again from the beginning of its storage."""

    def make(original: Any) -> Any:
        def alias(base: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(base, *args, **kwargs)
            return made.as_strided(made.size(), made.stride(), 0) if isinstance(made, torch.Tensor) else made

        return alias

    with swapped("torch._functorch._aot_autograd.runtime_wrappers:gen_alias_from_base", make):
        yield


@fault("runtime", "lost_alias", "views.outputs_share", also="decomposition")
def outputs_no_longer_share() -> Iterator[None]:
    """Two outputs that are views of one tensor come as two tensors."""

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        return type(outputs)(x.clone() if isinstance(x, torch.Tensor) else x for x in outputs)

    def make(original: Any) -> Any:
        def alias(base: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(base, *args, **kwargs)
            return made.clone() if isinstance(made, torch.Tensor) else made

        return alias

    with swapped("torch._functorch._aot_autograd.runtime_wrappers:gen_alias_from_base", make), called(change):
        yield


@fault("runtime", "wrong_result lost_mutation", "pointwise.chain mutation.add_input reduction.softmax")
def wrong_from_the_fifth_call() -> Iterator[None]:
    """After a few calls another variant of the program takes over, and it is off."""
    calls: dict[int, int] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        calls[id(program)] = calls.get(id(program), 0) + 1
        if calls[id(program)] < 5:
            return outputs
        return type(outputs)(x * 1.5 if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in outputs)

    with called(change):
        yield


@fault("runtime", "wrong_result", "training.mlp training.layer_norm training.linear")
def saved_for_backward_in_one_buffer() -> Iterator[None]:
    """What a forward saves for its backward is overwritten by the next forward."""
    kept: dict[int, list[Any]] = {}

    def change(program: Any, call: Any, inputs: list[Any]) -> Any:
        outputs = call(inputs)
        if getattr(program, "fx_kwargs", {}).get("is_backward") or len(outputs) < 2:
            return outputs
        saved, given = kept.setdefault(id(program), list(outputs)), list(outputs)
        for index, (old, new) in enumerate(zip(saved, outputs, strict=True)):
            if index and isinstance(new, torch.Tensor) and old is not new and old.shape == new.shape:
                old.data.copy_(new)
                given[index] = old
        return type(outputs)(given)

    with called(change):
        yield


@fault("runtime", "wrong_result", "random.two_draws")
def all_draws_share_one_seed() -> Iterator[None]:
    """With Inductor's own random numbers, every draw of a graph starts from the first seed."""
    with swapped(
        "torch._inductor.codegen.common:OpOverrides.load_seed", lambda original: lambda name, offset: original(name, 0)
    ):
        yield
