"""CUDA graphs without a GPU: what is called while one is captured is kept, with the memory it reads and writes, and a
replay does the same calls on the same memory. So a value that was read from outside a buffer is stale here too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from conformance.autodeploy.reference import ReferenceKernels
from conformance.backends.base import Case


class OnCPU(Case):
    """A case for `cuda` whose tensors are the CPU's."""

    @property
    def run_device(self) -> str:
        return "cpu"


class Recorded:
    """In place of torch.cuda.CUDAGraph."""

    replays = 0

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def pool(self) -> tuple[int, int]:
        return (0, 0)

    def replay(self) -> None:
        Recorded.replays += 1
        with torch.inference_mode():
            for func, args, kwargs, out in self.calls:
                again = func(*args, **kwargs)
                for old, new in zip(pytree.tree_leaves(out), pytree.tree_leaves(again), strict=True):
                    if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class _Recorder(TorchDispatchMode):
    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out


@contextmanager
def _graph(recorded: Recorded, **_: Any) -> Iterator[None]:
    with _Recorder(recorded.calls):
        yield


@contextmanager
def pretended(loaded: Any) -> Iterator[None]:
    """AutoDeploy captures and replays, its GPU kernels run as plain PyTorch, and its second stream is the first."""
    with ExitStack() as stack:
        for owner, name, value in (
            (torch.cuda, "graph", _graph),
            (torch.cuda, "CUDAGraph", Recorded),
            (torch.cuda, "current_device", lambda: 0),
            (loaded.module("compile.backends.torch_cudagraph"), "CUDAGraph", Recorded),
        ):
            stack.enter_context(patch.object(owner, name, value))
        streams = loaded.module("utils.multi_stream_utils")
        stack.enter_context(patch.object(streams.CudaStreamManager, "add_device", lambda self, device: None))
        stack.enter_context(streams.disable_multi_stream())
        stack.enter_context(ReferenceKernels())
        yield
