"""Changes of Inductor that break nothing, one or more a stage: what a new release may do.

A diff of two records must name each as the one cause, at the stage where it was made. They are used like faults:
`conformance run --plugin conformance.seeded.plugin` with CONFORMANCE_FAULT=guard_added.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from conformance.seeded.cache import AOT, FX
from conformance.seeded.capture import GUARDS
from conformance.seeded.codegen import written
from conformance.seeded.decomposition import decomposed
from conformance.seeded.fault import Fault, swapped
from conformance.seeded.postgrad import POST, at_the_end_of
from conformance.seeded.runtime import called
from conformance.stage import Stage

aten = torch.ops.aten

CHANGES: dict[str, Fault] = {}
QUIET: set[str] = set()  # changes that no stage shows, so that nothing may move


def change(stage: str, on: str, quiet: bool = False) -> Callable[[Callable[[], Iterator[None]]], Fault]:
    """Makes a change of a generator: its docstring says what the compiler does otherwise. `on` names micrographs that
    show it, and one that does not."""

    def make(function: Callable[[], Iterator[None]]) -> Fault:
        what = (inspect.getdoc(function) or "").split("\n")[0]
        made = Fault(function.__name__, Stage(stage), (), what, tuple(on.split()), contextmanager(function))
        CHANGES[made.name] = made
        if quiet:
            QUIET.add(made.name)
        return made

    return make


# ---------------------------------------------------------------------------------------------- capture


@change("capture", "pointwise.chain reduction.softmax")
def guard_added() -> Iterator[None]:
    """Every input tensor has one guard more, which always holds."""

    def make(original: Any) -> Any:
        def tensor_match(self: Any, guard: Any, value: Any = None) -> None:
            original(self, guard, value)
            self.get_guard_manager(guard).add_lambda_guard(lambda x: True, ["always"], None)

        return tensor_match

    with swapped(f"{GUARDS}.TENSOR_MATCH", make):
        yield


@change("capture", "dynamic.batch_and_length pointwise.chain")
def sizes_are_static() -> Iterator[None]:
    """A size that changed is captured as a number again, never as a symbol."""
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        yield


# ---------------------------------------------------------------------------------------- decomposition


@change("decomposition", "mlp.swiglu pointwise.chain")
def silu_by_sigmoid() -> Iterator[None]:
    """silu is decomposed into x·sigmoid(x), no longer into x / (1 + exp(-x))."""
    with decomposed(silu=lambda x: x * torch.sigmoid(x)):
        yield


# --------------------------------------------------------------------------------------------- postgrad


@change("postgrad", "pointwise.chain reduction.softmax")
def pass_added() -> Iterator[None]:
    """A pass more: it writes a product with 0.5 as a quotient by 2."""

    def edit(gm: Any) -> None:
        for node in gm.graph.nodes:
            if node.target is aten.mul.Tensor and node.args[1] == 0.5:
                node.target, node.args = aten.div.Tensor, (node.args[0], 2.0)

    with at_the_end_of(f"{POST}:remove_noop_ops", edit):
        yield


# ----------------------------------------------------------------------------------------------- fusion


@change("fusion", "norm.layer_norm pointwise.chain")
def fusion_limited() -> Iterator[None]:
    """At most two nodes are fused into one group."""
    with torch._inductor.config.patch(max_fusion_size=2):
        yield


# ---------------------------------------------------------------------------------------------- codegen


@change("codegen", "pointwise.chain reduction.softmax")
def loops_without_vectors() -> Iterator[None]:
    """C++ loops are written with scalars only."""
    with torch._inductor.config.patch({"cpp.simdlen": 1}):
        yield


@change("codegen", "pointwise.chain matmul.mm_add_bias")
def tanh_written_otherwise() -> Iterator[None]:
    """tanh has other C++ with the same value."""
    with written(lambda x: f"std::tanh({x} * 1)", lambda x: f"({x}).tanh()", name="tanh"):
        yield


# ---------------------------------------------------------------------------------------------- runtime


@change("runtime", "views.view_beside_result pointwise.chain", quiet=True)
def wrapper_that_only_looks() -> Iterator[None]:
    """Every call of a compiled graph goes through one Python function more."""
    with called(lambda program, call, inputs: call(inputs)):
        yield


# ------------------------------------------------------------------------------------------------ cache


@change("cache", "pointwise.chain reduction.softmax")
def no_cache_of_autograd() -> Iterator[None]:
    """The cache of AOTAutograd is off: only the graphs of Inductor are found again."""
    with torch._functorch.config.patch(enable_autograd_cache=False):
        yield


@change("cache", "pointwise.chain", quiet=True)
def key_with_a_salt() -> Iterator[None]:
    """The keys of the caches have one constant more."""

    def make(original: Any) -> Any:
        def key(*args: Any, **kwargs: Any) -> Any:
            found, lines = original(*args, **kwargs)
            return f"{found}s", lines

        return key

    with swapped(f"{FX}:compiled_fx_graph_hash", make), swapped(f"{AOT}:autograd_cache_key", make):
        yield
