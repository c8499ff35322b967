"""Faults of Dynamo: guards, breaks, the captured graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import torch

from conformance.errors import UsageError
from conformance.seeded.fault import fault, retarget, swapped

GUARDS = "torch._dynamo.guards:GuardBuilder"


def _nothing(_: Any) -> Any:
    return lambda *args, **kwargs: None


@fault("capture", "missed_recompile", "pointwise.chain views.transposed_input")
def no_tensor_guards() -> Iterator[None]:
    """No guard is put on tensors: another dtype or stride gets the old program."""
    with swapped(f"{GUARDS}.TENSOR_MATCH", _nothing):
        yield


@fault("capture", "missed_recompile wrong_result", "dynamic.length_guard dynamic.shape_arithmetic")
def no_shape_guards() -> Iterator[None]:
    """What was assumed about symbolic sizes is not guarded."""
    with swapped(f"{GUARDS}.SHAPE_ENV", _nothing):
        yield


@fault("capture", "missed_recompile wrong_result", "pointwise.scalar_argument edge.nested")
def no_constant_guards() -> Iterator[None]:
    """A Python number or flag that was burnt into the graph is not guarded."""
    with ExitStack() as stack:
        for kind in ("EQUALS_MATCH", "CONSTANT_MATCH", "BOOL_MATCH"):
            stack.enter_context(swapped(f"{GUARDS}.{kind}", _nothing))
        yield


@fault("capture", "extra_recompile", "pointwise.chain mutation.add_input")
def guard_never_holds() -> Iterator[None]:
    """A guard that holds once and never again: every call captures anew."""

    def make(original: Any) -> Any:
        def tensor_match(self: Any, guard: Any, value: Any = None) -> None:
            original(self, guard, value)
            first = iter([True])  # torch itself looks once whether a new guard holds
            self.get_guard_manager(guard).add_lambda_guard(lambda x: next(first, False), ["seeded"], None)

        return tensor_match

    with swapped(f"{GUARDS}.TENSOR_MATCH", make):
        yield


@fault("capture", "graph_break", "pointwise.chain mlp.swiglu")
def break_at_sigmoid() -> Iterator[None]:
    """sigmoid, tanh and silu are not captured: the graph breaks there."""
    from torch._dynamo.exc import Unsupported

    broken = {torch.sigmoid, torch.tanh, torch.nn.functional.silu, torch.exp}

    def make(original: Any) -> Any:
        def call_function(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
            if self.value in broken:
                raise Unsupported("seeded: not captured", "seeded")
            return original(self, tx, args, kwargs)

        return call_function

    with swapped("torch._dynamo.variables.torch:TorchInGraphFunctionVariable.call_function", make):
        yield


@fault("capture", "extra_recompile", "norm.layer_norm mlp.swiglu")
def sizes_stay_static() -> Iterator[None]:
    """A size that changed is not made symbolic: each new size captures again."""
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        yield


@fault("capture", "extra_recompile", "dynamic.batch_and_length kv_cache.dynamic_length")
def mark_dynamic_ignored() -> Iterator[None]:
    """mark_dynamic() does nothing."""
    with swapped("torch._dynamo:mark_dynamic", _nothing):
        yield


@fault("capture", "wrong_result", "pointwise.chain reduction.row_sum mlp.gelu")
def captured_wrong_op() -> Iterator[None]:
    """The captured graph adds where the program subtracts, and has the wrong activation."""
    import operator

    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            retarget(gm, operator.sub, operator.add)
            retarget(gm, torch.nn.functional.gelu, torch.nn.functional.relu6)
            retarget(gm, torch.relu, torch.abs)
            retarget(gm, torch.sigmoid, torch.tanh)
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    with swapped("torch._dynamo.output_graph:OutputGraph.call_user_compiler", make):
        yield


@fault("capture", "wrong_result wrong_metadata lost_alias", "pointwise.shared_producer matmul.mm_two_consumers")
def captured_outputs_swapped() -> Iterator[None]:
    """Two outputs of the captured graph change places."""

    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            output = next(iter(reversed(gm.graph.nodes)))
            values = output.args[0]
            if len(values) > 1:
                output.args = ((*values[1:], values[0]),)
                gm.recompile()
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    with swapped("torch._dynamo.output_graph:OutputGraph.call_user_compiler", make):
        yield


@fault("capture", "lost_mutation wrong_result", "mutation.counter kv_cache.streaming_buffer mutation.add_input")
def captured_write_lost() -> Iterator[None]:
    """In-place methods are captured as the methods that write nothing."""

    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            for node in gm.graph.nodes:
                if node.op == "call_method" and node.target in ("add_", "mul_", "copy_"):
                    node.target = {"add_": "add", "mul_": "mul", "copy_": "expand_as"}[node.target]
            gm.recompile()
            return original(self, gm, *args, **kwargs)

        return call_user_compiler

    with swapped("torch._dynamo.output_graph:OutputGraph.call_user_compiler", make):
        yield


@fault("capture", "missed_recompile wrong_metadata wrong_result", "norm.rmsnorm mlp.swiglu")
def no_guard_on_gradients() -> Iterator[None]:
    """Whether gradients are on is not guarded: what was captured without them is used with them."""

    def make(original: Any) -> Any:
        return lambda self, guard: None

    with ExitStack() as stack:
        for name in ("GRAD_MODE", "GLOBAL_STATE"):
            stack.enter_context(swapped(f"{GUARDS}.{name}", make))
        yield


@fault("capture", "missed_recompile wrong_result", "random.dropout_off")
def no_guard_on_training() -> Iterator[None]:
    """Whether a module is in training mode is not guarded."""

    def make(original: Any) -> Any:
        def guard(self: Any, guard: Any, *args: Any, **kwargs: Any) -> Any:
            return None if "training" in guard.name else original(self, guard, *args, **kwargs)

        return guard

    with ExitStack() as stack:
        for kind in ("CONSTANT_MATCH", "EQUALS_MATCH", "BOOL_MATCH", "ID_MATCH", "TRUE_MATCH", "FALSE_MATCH"):
            with suppress(UsageError):
                stack.enter_context(swapped(f"{GUARDS}.{kind}", make))
        yield


@fault("capture", "wrong_result missed_recompile", "norm.rmsnorm matmul.linear_bias_relu mutation.counter")
def parameters_burnt_in() -> Iterator[None]:
    """Parameters and buffers are captured as copies of what they were."""

    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            compiled = original(self, gm, *args, **kwargs)
            first: dict[int, Any] = {}

            def call(*inputs: Any) -> Any:
                frozen = []
                for index, value in enumerate(inputs):
                    if isinstance(value, torch.nn.Parameter):
                        value = first.setdefault(index, value.detach().clone().requires_grad_(value.requires_grad))
                    frozen.append(value)
                return compiled(*frozen)

            return call

        return call_user_compiler

    with swapped("torch._dynamo.output_graph:OutputGraph.call_user_compiler", make):
        yield
