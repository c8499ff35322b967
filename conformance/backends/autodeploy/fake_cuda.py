"""Lets AutoDeploy's passes run where there is no GPU.

Its passes ask the driver what the GPU is and how much memory is free, and make their example tensors on `cuda`. Only such
questions are answered, for an H200, and only while the context is on; what a graph computes is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from conformance.target import DEVICES

FREE = 1 << 34
H200 = DEVICES["sm_90"]
ANSWERS: dict[str, Any] = {
    "mem_get_info": lambda device=None: (FREE, FREE),
    "memory_stats": lambda device=None: {},
    "memory_reserved": lambda device=None: 0,
    "memory_allocated": lambda device=None: 0,
    "get_device_properties": lambda device=None: H200,
    "get_device_capability": lambda device=None: (H200.major, H200.minor),
    "empty_cache": lambda: None,
    "synchronize": lambda device=None: None,
}


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
    if torch.cuda.is_available():
        yield
        return
    with ExitStack() as stack:
        for name, answer in ANSWERS.items():
            stack.enter_context(patch.object(torch.cuda, name, answer))
        stack.enter_context(OnTheCPU())
        yield
