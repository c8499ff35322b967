"""The cache stage: miss, then hit; a changed config misses; artifacts load in a process that compiled nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from conformance import oracle
from conformance.backends.inductor.hooks import Moved, _attribute

# A setting that changes generated code, and so must be part of every key.
CHANGED = {"realize_reads_threshold": 3}


class Missed(Exception):
    """Raised in place of a compile, once the caches have answered that they have nothing."""


def counts() -> dict[str, int]:
    """The cache counters that torch keeps, under one name for all versions."""
    counters = torch._dynamo.utils.counters
    inductor, aot = counters["inductor"], counters["aot_autograd"]
    return {
        "fx_hit": inductor["fxgraph_cache_hit"],
        "fx_miss": inductor["fxgraph_cache_miss"],
        "fx_bypass": inductor["fxgraph_cache_bypass"],
        "aot_hit": aot["autograd_cache_hit"],
        "aot_miss": aot["autograd_cache_miss"],
        "aot_bypass": aot["autograd_cache_bypass"],
    }


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Counts what happens inside."""
    before = counts()
    difference: dict[str, int] = {}
    yield difference
    after = counts()
    difference.update({name: after[name] - before[name] for name in after})


@contextmanager
def stop_at_miss() -> Iterator[None]:
    """A miss is all that is asked for: do not compile after it."""
    owner, name = _attribute("torch._inductor.compile_fx:fx_codegen_and_compile")

    def missed(*_: Any, **__: Any) -> Any:
        raise Missed

    with patch.object(owner, name, missed):
        yield


def forget_artifacts() -> None:
    """Artifacts of earlier compiles in this process are no part of the next one's bundle."""
    try:
        from torch.compiler._cache import CacheArtifactManager
    except ImportError:
        raise Moved("torch.compiler._cache.CacheArtifactManager") from None
    CacheArtifactManager.clear()


def again(call: Callable[[], oracle.Outcome], ref: oracle.Reference) -> tuple[dict[str, int], str]:
    """A second compile of the same graph, in the same process, with Dynamo's own memory wiped: the counters, and in what
    the cached program differs from eager."""
    torch._dynamo.reset()
    with counted() as seen:
        outcome = call()
    differences = oracle.compare(outcome, ref)
    return nonzero(seen), str(differences[0]) if differences else ""


def misses(call: Callable[[], oracle.Outcome], settings: dict[str, Any]) -> tuple[dict[str, int], str]:
    """Something that must not be served from the cache: the same graph under other settings, or another graph."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(settings), stop_at_miss(), counted() as seen:
        call()
    return nonzero(seen), ""


def nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def keep_only_kernels(folder: Path) -> None:
    """What a machine has that was sent the artifacts: compiled kernels by content, and no graph cache."""
    for name in ("fxgraph", "aotautograd"):
        shutil.rmtree(folder / name, ignore_errors=True)

