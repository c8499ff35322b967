"""Lets AutoDeploy's passes run where there is no GPU.

Its passes ask the driver what the GPU is and how much memory is free, and make their example tensors on `cuda`. Only
such questions are answered, for an H200, and only while the context is on; what a graph computes is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from conformance.backends.autodeploy.seam import outside
from conformance.headless.answers import answering
from conformance.target import DEVICES


class OnTheCPU(TorchFunctionMode):
    """`device="cuda"` in a factory function means the CPU here, and memory need not be pinned for a GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if isinstance(device, (str, torch.device)) and torch.device(device).type == "cuda":
            kwargs["device"] = "cpu"
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return func(*args, **kwargs)


@contextmanager
def answers() -> Iterator[None]:
    """Inside, a machine without a GPU answers as one with an H200 does."""
    if torch.cuda.is_available():
        yield
        return
    with answering(outside, DEVICES["sm_90"]), OnTheCPU():
        yield
