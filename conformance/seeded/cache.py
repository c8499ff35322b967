"""Faults of the FX graph cache, the AOTAutograd cache and the artifacts made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from conformance.seeded.fault import fault, swapped

FX = "torch._inductor.codecache"
AOT = "torch._functorch._aot_autograd.autograd_cache"


@fault("cache", "cache_miss", "pointwise.chain")
def cache_off() -> Iterator[None]:
    """No cache is asked, none is filled."""
    import torch._functorch.config

    with torch._inductor.config.patch(fx_graph_cache=False), torch._functorch.config.patch(enable_autograd_cache=False):
        yield


@fault("cache", "cache_miss", "pointwise.chain")
def key_never_the_same() -> Iterator[None]:
    """The key has a counter in it: nothing is ever found again."""
    numbers = itertools.count()

    def make(original: Any) -> Any:
        def key(*args: Any, **kwargs: Any) -> Any:
            found, lines = original(*args, **kwargs)
            return f"{found}{next(numbers)}", lines

        return key

    with swapped(f"{FX}:compiled_fx_graph_hash", make), swapped(f"{AOT}:autograd_cache_key", make):
        yield


@fault("cache", "stale_cache", "pointwise.chain norm.layer_norm")
def key_always_the_same() -> Iterator[None]:
    """Every graph has the same key."""

    def make(original: Any) -> Any:
        return lambda *args, **kwargs: ("a" + "0" * 52, original(*args, **kwargs)[1])

    with swapped(f"{FX}:compiled_fx_graph_hash", make), swapped(f"{AOT}:autograd_cache_key", make):
        yield


@fault("cache", "stale_cache", "pointwise.chain norm.layer_norm")
def key_without_settings() -> Iterator[None]:
    """The key does not depend on Inductor's settings."""

    def make(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            self.inductor_config = b""

        return __init__

    with swapped(f"{FX}:FxGraphHashDetails.__init__", make):
        yield


@fault("cache", "stale_cache", "pointwise.chain pointwise.shared_producer")
def key_without_constants() -> Iterator[None]:
    """The key does not depend on the numbers in the graph."""
    import re

    def blurred(data: Any) -> Any:
        return (
            {**data, "_code": re.sub(r"(?<![\w.])\d+\.\d+", "0.0", data["_code"])}
            if isinstance(data.get("_code"), str)
            else data
        )

    def fx(original: Any) -> Any:
        def reduce(self: Any, gm: Any) -> Any:
            function, (data, imports) = original(self, gm)
            return function, (blurred(data), imports)

        return reduce

    def aot(original: Any) -> Any:
        def reduce(self: Any, gm: Any) -> Any:
            function, ((data, imports),) = original(self, gm)
            return function, ((blurred(data), imports),)

        return reduce

    with (
        swapped(f"{FX}:FxGraphCachePickler._reduce_graph_module", fx),
        swapped(f"{AOT}:AOTAutogradCachePickler._reduce_graph_module_for_cache_key", aot),
    ):
        yield


@fault("cache", "cache_miss", "pointwise.chain")
def artifacts_not_loaded() -> Iterator[None]:
    """load_cache_artifacts() reads the bundle and puts nothing into the caches."""
    with swapped(
        "torch.compiler._cache:CacheArtifactManager.populate_caches", lambda _: lambda artifacts: _nothing_loaded()
    ):
        yield


def _nothing_loaded() -> Any:
    from torch.compiler._cache import CacheInfo

    return CacheInfo()


@fault("cache", "cache_miss stale_cache", "pointwise.chain")
def artifacts_without_graphs() -> Iterator[None]:
    """Graphs are not recorded for the bundle of artifacts."""

    def make(original: Any) -> Any:
        return lambda cls, kind, key, content: None

    with swapped("torch.compiler._cache:CacheArtifactManager.record_artifact", make):
        yield


@fault("cache", "stale_cache", "pointwise.chain reduction.row_sum")
def stale_program_served() -> Iterator[None]:
    """A hit gives an older program: the answer is off."""

    def make(original: Any) -> Any:
        def after(self: Any, *args: Any, **kwargs: Any) -> Any:
            path = original(self, *args, **kwargs)
            inner = self.current_callable
            self.current_callable = lambda inputs: tuple(
                o + 1 if isinstance(o, torch.Tensor) else o for o in inner(inputs)
            )
            return path

        return after

    with swapped("torch._inductor.output_code:CompiledFxGraph.after_deserialization", make):
        yield


@fault("cache", "stale_cache", "mutation.add_input mutation.two_inputs")
def cached_program_writes_nothing() -> Iterator[None]:
    """A program that comes from the cache does not write into its inputs."""

    def make(original: Any) -> Any:
        def after(self: Any, *args: Any, **kwargs: Any) -> Any:
            path = original(self, *args, **kwargs)
            inner = self.current_callable
            self.current_callable = lambda inputs: inner(
                [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
            )
            return path

        return after

    with swapped("torch._inductor.output_code:CompiledFxGraph.after_deserialization", make):
        yield


@fault("cache", "stale_cache cache_miss", "pointwise.chain")
def artifacts_wrong_in_a_fresh_process() -> Iterator[None]:
    """What is loaded from artifacts in another process is off; in this one it is right."""
    import os

    started_here = os.environ.setdefault("CONFORMANCE_SEEDED_PARENT", str(os.getpid())) == str(os.getpid())

    def make(original: Any) -> Any:
        def after(self: Any, *args: Any, **kwargs: Any) -> Any:
            path = original(self, *args, **kwargs)
            inner = self.current_callable
            if not started_here:
                self.current_callable = lambda inputs: tuple(
                    -o if isinstance(o, torch.Tensor) else o for o in inner(inputs)
                )
            return path

        return after

    try:
        with swapped("torch._inductor.output_code:CompiledFxGraph.after_deserialization", make):
            yield
    finally:
        if started_here:
            os.environ.pop("CONFORMANCE_SEEDED_PARENT", None)


@fault(
    "cache",
    "stale_cache cache_miss wrong_result crash",
    "pointwise.chain norm.layer_norm edge.layouts",
    also="capture runtime",
)
def key_without_dtypes() -> Iterator[None]:
    """The key does not depend on the dtypes and strides of the inputs."""
    import dataclasses

    import torch

    def make(original: Any) -> Any:
        def blurred(*args: Any, **kwargs: Any) -> Any:
            return dataclasses.replace(original(*args, **kwargs), dtype=torch.float32, stride=())

        return blurred

    with swapped(f"{FX}:extract_tensor_metadata_for_cache_key", make):
        yield
